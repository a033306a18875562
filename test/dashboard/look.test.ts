import assert from "node:assert/strict";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { DashboardLab } from "../support/dashboard-lab.ts";
import { shownPods } from "../support/shown-pods.ts";
import { until } from "../support/until.ts";

const pages = ["", "pods", "logs", "images", "storage", "machine", "config", "doctor", "agent"] as const;

test("each page, light and dark, without barriers or complaints", async () => {
  await using lab = await DashboardLab.start();
  for (const [name, spec] of shownPods(lab.containerd.images)) await lab.cluster.create(name, spec);
  await until("pods run", async () => {
    const all = await lab.cluster.agent.client.pods(AbortSignal.timeout(10_000));
    return all.filter(({ status }) => status?.phase === "Running").length >= 5;
  });
  const all = await lab.cluster.agent.client.pods(AbortSignal.timeout(10_000));
  const uidOf = (name: string) => all.find(({ metadata }) => metadata?.name === name)?.metadata?.uid;
  const [shop, search] = [uidOf("shop"), uidOf("search")];
  // Of a pod that is gone, in a directory that no part of the agent will remove: it is a stranger's.
  const left = join(lab.cluster.agent.rootDir, "pods/01234567-89ab-cdef-0123-456789abcdef");
  const data = join(left, "volumes/example.com~flex/data");
  await mkdir(data, { recursive: true });
  await writeFile(join(data, "precious"), "");
  const hoursAgo = Date.now() / 1000 - 3 * 3600;
  await utimes(left, hoursAgo, hoursAgo);
  const paths = [...pages, `pods/${shop}`, `logs/${shop}`, `pods/${search}`];
  for (const colorScheme of ["light", "dark"] as const) {
    // Without what tests need of a browser: here nothing may be complained of.
    await using visitor = await lab.visitor({ colorScheme });
    await visitor.page.waitForTimeout(9_000);
    for (const [index, path] of paths.entries()) {
      await visitor.goTo(path);
      await until(`${path} is shown`, async () => !/Asking the agent…|Examining the node…/.test(await visitor.text()));
      await visitor.page.waitForTimeout(2_500);
      const names = [...pages.map((page) => page || "node"), "pod", "log", "pod-in-trouble"];
      await visitor.picture(`${names[index]}-${colorScheme}`);
    }
    await visitor.goTo("storage");
    await visitor.untilText(/01234567-89ab-cdef-0123-456789abcdef for 3 h/);
    await visitor.goTo(`pods/${search}`);
    await visitor.page.waitForTimeout(2_500);
    await visitor.page.setViewportSize({ width: 1180, height: 720 });
    await visitor.picture(`screen-pod-${colorScheme}`, "screen");
    await visitor.goTo("");
    await visitor.page.waitForTimeout(2_500);
    await visitor.picture(`screen-node-${colorScheme}`, "screen");
  }
  assert.deepEqual(lab.complaints, []);
  await rm(left, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    // axe is a script of its own, which the pages allow nobody to add.
    await using visitor = await lab.visitor({ colorScheme, bypassCSP: true });
    for (const path of paths) {
      await visitor.goTo(path);
      await until(`${path} is shown`, async () => !/Asking the agent…|Examining the node…/.test(await visitor.text()));
      assert.deepEqual(await visitor.barriers(), [], `${path} ${colorScheme}`);
    }
    // A screen at 200 %, and a telephone.
    for (const width of [680, 360]) {
      await visitor.page.setViewportSize({ width, height: 720 });
      for (const path of paths) {
        await visitor.goTo(path);
        await until(
          `${path} is shown`,
          async () => !/Asking the agent…|Examining the node…/.test(await visitor.text()),
        );
        const tooWide = await visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert.equal(tooWide, 0, `${path} scrolls sideways on a screen of ${width} points`);
      }
    }
  }
});
