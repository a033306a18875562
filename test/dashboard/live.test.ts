import assert from "node:assert/strict";
import { get } from "node:http";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CriClient } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { DashboardLab } from "../support/dashboard-lab.ts";
import { untilTold } from "../support/raw-runtime.ts";
import { patienceMs, until } from "../support/until.ts";

test("the page follows: changes, the agent killed and back, the API server and the runtime away", async (t) => {
  await using lab = await DashboardLab.start();
  const { cluster, containerd } = lab;
  const containers = [{ name: "main", image: containerd.images.busybox, command: [...untilTold] }];
  const talks = ["sh", "-c", "while true; do date +%s; sleep 0.5; done"];
  const { metadata } = await cluster.create("web", { containers });
  await cluster.until("web", "runs", ({ status }) => status?.phase === "Running");
  await using visitor = await lab.visitor();
  const { page } = visitor;

  await t.test("a change of a pod is on the screen about when others are told of it", async () => {
    await visitor.goTo("pods");
    await visitor.untilText("web");
    const lags: number[] = [];
    for (let round = 0; round < 7; round++) {
      const name = `guest-${round}`;
      // When it is drawn, by the page's own clock, which is this machine's.
      const drawn = page.evaluate(`new Promise((resolve) => {
        const look = () => {
          if (![...document.querySelectorAll("td")].some((cell) => cell.textContent === ${JSON.stringify(name)})) return;
          watcher.disconnect();
          resolve(Date.now());
        };
        const watcher = new MutationObserver(look);
        watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
        look();
      })`);
      const told = firstTold(lab, name);
      await cluster.create(name, { containers });
      lags.push(Number(await drawn) - (await told));
    }
    t.diagnostic(`told to drawn, ms: ${lags.join(" ")}`);
    assert.ok(median(lags) <= barMs(), `half of the changes took more than ${median(lags)} ms`);
  });

  await t.test("a change at the runtime is soon on the screen", async () => {
    await visitor.goTo("pods");
    const settings = { runtimeEndpoint: containerd.endpoint, requestTimeoutMs: patienceMs };
    const cri = new CriClient(settings, { clock: systemClock });
    const lags: number[] = [];
    for (let round = 0; round < 5; round++) {
      const name = `ends-${round}`;
      const { metadata: ends } = await cluster.create(name, {
        restartPolicy: "Never",
        containers: [{ name: "main", image: containerd.images.busybox, command: ["sleep", "1"] }],
      });
      const drawnAt = Number(
        await page.evaluate(`new Promise((resolve) => {
        const look = () => {
          const row = [...document.querySelectorAll("tbody tr")].find((each) => each.textContent.startsWith("${name}default"));
          if (row?.textContent.includes("Completed") !== true) return;
          watcher.disconnect();
          resolve(Date.now());
        };
        const watcher = new MutationObserver(look);
        watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
        look();
      })`),
      );
      lags.push(drawnAt - (await endedAt(cri, ends.uid)));
    }
    cri.close();
    t.diagnostic(`ended at the runtime to drawn, ms: ${lags.map(Math.round).join(" ")}`);
    assert.ok(median(lags) <= barMs(), `half of the changes took more than ${median(lags)} ms`);
  });

  await t.test("a time that is copied is the time itself, and the page stays as it is", async () => {
    await visitor.goTo("pods");
    await page.waitForSelector("td time");
    for (const what of ["row", "time"] as const) {
      const found = (await page.evaluate(`(() => {
        const time = document.querySelector("td time");
        const what = ${JSON.stringify(what)} === "row" ? time.closest("tr") : time.firstChild;
        // Within the text of the time: as a double click selects it.
        if (what === time.firstChild) getSelection().setBaseAndExtent(what, 0, what, 1);
        else getSelection().selectAllChildren(what);
        const before = [time.textContent, getSelection().toString()];
        const clipboardData = new DataTransfer();
        time.dispatchEvent(new ClipboardEvent("copy", { clipboardData, bubbles: true, cancelable: true }));
        const after = [time.textContent, getSelection().toString()];
        return { before, after, title: time.title, copied: clipboardData.getData("text/plain") };
      })()`)) as { before: string[]; after: string[]; title: string; copied: string };
      const { before, after, title, copied } = found;
      assert.match(title, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
      assert.deepEqual(after, before);
      if (what === "time") assert.equal(copied, title);
      else assert.ok(copied.includes(title) && copied.includes("default") && copied.includes("\t"), copied);
    }
  });

  await t.test("a log opens with its last 2,000 lines", async () => {
    const command = ["sh", "-c", "seq 1 3000; exec sleep 3600"];
    const { metadata: counter } = await cluster.create("counter", {
      containers: [{ name: "main", image: containerd.images.busybox, command }],
    });
    await cluster.until("counter", "runs", ({ status }) => status?.phase === "Running");
    await visitor.goTo(`logs/${counter.uid}/main`);
    await visitor.untilText("2000 lines, followed");
    await until("the last line is there", async () => (await page.locator(".line").last().textContent()) === "3000");
    assert.equal(await page.locator(".line").first().textContent(), "1001");
  });

  await t.test("a pod that is replaced under its name is another pod", async () => {
    await visitor.goTo(`pods/${metadata.uid}`);
    await visitor.untilText("Where the time went");
    await cluster.delete("web");
    await cluster.untilGone("web");
    await visitor.untilText(/there is no such pod on this node\. This is what was known last\..*Where the time went/);
    await cluster.create("web", { containers });
    await visitor.goTo("pods");
    await until("the successor is shown", async () => {
      const link = await page
        .locator("a.row-link", { hasText: /^web$/ })
        .getAttribute("href")
        .catch(() => null);
      return link !== null && !link.includes(metadata.uid);
    });
  });

  await t.test("the agent is killed and comes back while the page is open", async () => {
    await visitor.goTo("");
    await visitor.untilText("running and ready");
    await until("charts have points", async () => Number(await page.evaluate("performance.now()")) > 4_000);
    await cluster.agent.kill9();
    await visitor.untilText("The agent is away; trying again.");
    assert.match(await visitor.text(), /running and ready/, "what was known stays");
    await cluster.agent.launch();
    await visitor.untilText(/The agent restarted \d+ s ago\. Containers kept running\./);
    await page.waitForSelector(".link-state.good");
    await visitor.untilText("running and ready");
    assert.ok((await page.locator(".uplot").count()) > 3, "the charts stay");
  });

  await t.test("a log goes on after the agent was killed, and an address leads to its page again", async () => {
    const { metadata: talker } = await cluster.create("talker", {
      containers: [{ name: "main", image: containerd.images.busybox, command: talks }],
    });
    await cluster.until("talker", "runs", ({ status }) => status?.phase === "Running");
    await visitor.goTo(`logs/${talker.uid}/main`);
    await page.reload();
    await visitor.untilText(/lines, followed/);
    assert.equal(await page.title(), "Logs · test-node");
    await until("a line is read", async () => (await page.locator(".line").count()) > 0);
    await cluster.agent.kill9();
    await visitor.untilText("the agent is away; trying again");
    assert.ok((await page.locator(".line").count()) > 0, "what was read stays");
    await cluster.agent.launch();
    await visitor.untilText(/lines, followed/);
    const lastLine = (): Promise<string | null> => page.locator(".line").last().textContent();
    const seen = await lastLine();
    await until("it goes on", async () => (await lastLine()) !== seen);
    await visitor.goTo(`pods/${talker.uid}`);
    await page.reload();
    await until("the title is the pod's", async () => (await page.title()) === "talker · test-node");
    await visitor.goTo("");
  });

  await t.test("the API server is away", async () => {
    await cluster.outage.begin();
    await visitor.untilText(/State▲away.*Next try/);
    await visitor.goTo("pods");
    await visitor.untilText("web");
    await cluster.outage.end();
    await visitor.goTo("");
    await visitor.untilText(/State●connected/);
  });

  await t.test("the runtime is away", async () => {
    await containerd.kill9();
    await visitor.untilText("Not ready");
    await visitor.goTo("images");
    await visitor.untilText(/./);
    await containerd.restart();
    await visitor.goTo("");
    await visitor.untilText(/Ready\d+ pods?/);
  });

  await t.test("two pages see the same, and each is told", async () => {
    await using other = await lab.visitor();
    await other.goTo("pods");
    await visitor.goTo("pods");
    await cluster.create("late", { containers });
    for (const each of [visitor, other]) await each.untilText("late");
  });

  await t.test("below the prefix of the node's proxy, with nobody's cookie", async () => {
    await using proxied = await lab.proxied();
    await proxied.untilText("running and ready");
    for (const path of ["pods", "images", "config", "agent"]) {
      await proxied.goTo(path);
      await until(`${path} is shown`, async () => !/Asking the agent/.test(await proxied.text()));
    }
    await proxied.goTo("pods");
    await proxied.untilText("late");
  });
  assert.deepEqual(lab.complaints, []);
});

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN;
}

/** A quarter of a second; where more want to work than there are processors, everything takes as many times as long. */
function barMs(): number {
  return 250 * Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
}

/** By the runtime's own clock, which is this machine's. */
async function endedAt(cri: CriClient, uid: string): Promise<number> {
  const labelSelector = { "io.kubernetes.pod.uid": uid };
  const { containers } = await cri.runtime.listContainers({
    filter: { id: "", state: undefined, podSandboxId: "", labelSelector },
  });
  const [container] = containers;
  if (container === undefined) throw new Error("the runtime has no such container any more");
  const { status } = await cri.runtime.containerStatus({ containerId: container.id, verbose: false });
  return Number(status?.finishedAt ?? 0n) / 1e6;
}

/** When the local socket first tells of the pod. */
function firstTold({ cluster }: DashboardLab, name: string): Promise<number> {
  const where = { socketPath: join(cluster.agent.rootDir, "nodelet.sock"), path: "/pods?watch=1" };
  return new Promise((resolve, reject) => {
    const request = get(where, (response) => {
      let text = "";
      // Leaving in the middle of an answer is an error to Node.
      response.on("error", () => {});
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (!text.includes(`"name":"${name}"`)) return;
        resolve(Date.now());
        request.destroy();
      });
    });
    request.on("error", reject);
  });
}
