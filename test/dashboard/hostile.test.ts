import assert from "node:assert/strict";
import { test } from "node:test";
import { DashboardLab } from "../support/dashboard-lab.ts";
import { until } from "../support/until.ts";

const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
const bidi = "invoice\u202Efdp.exe";
const ansi = "\u001b[2J\u001b[31mred\u001b[0m";

test("what pods write stays text", async (t) => {
  await using lab = await DashboardLab.start();
  const { cluster, containerd } = lab;
  const { busybox: image } = containerd.images;
  const say = (text: string): string => `printf '%b' '${Buffer.from(text).toString("hex").replace(/../g, "\\x$&")}'`;
  const line = say(`${markup} ${bidi} ${ansi}\n`);
  const long = "head -c 1048576 /dev/zero | tr '\\0' 'x'; echo; echo after the long line";
  const script = `${line}; ${line} > /dev/termination-log; ${long}; sleep 1; exit 1`;
  await cluster.create("hostile", { containers: [{ name: "main", image, command: ["sh", "-c", script] }] });
  await cluster.create("h".repeat(240), {
    containers: [{ name: "n".repeat(63), image, command: ["sh", "-c", "sleep 100000 & wait"] }],
  });
  await cluster.create("unknown-image", {
    containers: [{ name: "main", image: `registry.invalid/${"a".repeat(120)}:1` }],
  });
  const pod = await cluster.until("hostile", "has ended once", ({ status }) =>
    (status?.containerStatuses ?? []).some(({ lastState }) => lastState?.terminated !== undefined),
  );
  await using visitor = await lab.visitor();
  const { page } = visitor;
  const uid = pod.metadata?.uid ?? "";

  await t.test("messages of the runtime and of containers", async () => {
    await visitor.goTo(`pods/${uid}`);
    await visitor.untilText(markup);
    await visitor.untilText("invoice⟨U+202E⟩fdp.exe");
    await visitor.untilText("^[[31mred");
  });

  await t.test("logs, with a line of a megabyte", async () => {
    await visitor.goTo(`logs/${uid}`);
    await page.getByRole("button", { name: "Previous", exact: true }).click();
    await visitor.untilText("after the long line");
    await visitor.untilText(markup);
    assert.match(await visitor.text(), /\d+ more bytes in this line/);
    const widest = await page.evaluate(
      "Math.max(...[...document.querySelectorAll('.line')].map((l) => l.textContent.length))",
    );
    assert.ok(Number(widest) < 40_000);
    await page.getByRole("button", { name: "Colours", exact: true }).click();
    await until("colours are drawn", async () => (await page.locator(".a31").count()) > 0);
    await page.getByRole("searchbox", { name: "Search in the log" }).fill("after the long");
    await page.getByRole("button", { name: "Colours", exact: true }).click();
    await until("what is found is marked", async () => (await page.locator("mark").count()) >= 1);
  });

  await t.test("long names", async () => {
    await visitor.goTo("pods");
    await visitor.untilText("h".repeat(240));
    await page.setViewportSize({ width: 680, height: 450 });
    const isScrolled = await page.evaluate("document.documentElement.scrollWidth > innerWidth + 1");
    assert.equal(isScrolled, false, "at 200 % zoom the page itself does not scroll sideways");
  });
  assert.equal(await page.evaluate("document.querySelectorAll('main img, main script').length"), 0);
  assert.doesNotMatch(await page.title(), /^[12]$/);
  assert.deepEqual(lab.complaints, []);
});
