import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Clock, systemClock, untilAborted } from "../../src/ground/base/index.ts";
import { builtPages, ServedDashboard, ShownNode } from "../support/dashboard.ts";
import { browserPath } from "../support/dashboard-lab.ts";
import { FreezingRelay } from "../support/freezing-relay.ts";
import { testPod } from "../support/pods.ts";
import { until } from "../support/until.ts";

let browser: Browser;
before(async () => {
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
});
after(() => browser.close());

const textOf = async (page: Page): Promise<string> => (await page.locator("main").textContent()) ?? "";

async function logIn(page: Page, at: string, served: ServedDashboard<Clock>): Promise<void> {
  await page.goto(`http://${at}/dashboard/#token=${await served.token()}`);
  await page.waitForSelector(".link-state.good");
  await page.evaluate("location.hash = '#/pods'");
}

test("a laptop that slept for an hour, and whose connection died meanwhile, shows what is true now", async () => {
  const node = new ShownNode(systemClock);
  node.put(testPod({}, { name: "before", uid: "uid-1" }));
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await using relay = await FreezingRelay.start(served.port);
  await using page = await browser.newPage();
  await page.clock.install();
  await logIn(page, `127.0.0.1:${relay.port}`, served);
  await until("the pod is shown", async () => (await textOf(page)).includes("before"));
  relay.freeze();
  node.remove("uid-1");
  node.put(testPod({}, { name: "meanwhile", uid: "uid-2" }));
  await page.clock.fastForward("01:00:00");
  await until("the other is shown", async () => (await textOf(page)).includes("meanwhile"));
  assert.doesNotMatch(await textOf(page), /before/);
  await page.waitForSelector(".link-state.good");
});

test("a log that was open while the laptop slept goes on", async () => {
  const node = new ShownNode(systemClock);
  node.put(testPod({}, { name: "web", uid: "uid-1" }));
  let opened = 0;
  node.copyLog = async (_request, sink, signal) => {
    await sink(Buffer.from(`2026-01-01T00:00:00Z opened ${++opened} times\n`));
    await untilAborted(signal);
  };
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await using relay = await FreezingRelay.start(served.port);
  await using page = await browser.newPage();
  await page.clock.install();
  await logIn(page, `127.0.0.1:${relay.port}`, served);
  await page.evaluate("location.hash = '#/logs/uid-1'");
  await until("the log is shown", async () => (await textOf(page)).includes("opened 1 times"));
  relay.freeze();
  await page.clock.fastForward("01:00:00");
  await until("it is read again", async () => (await textOf(page)).includes("opened 2 times"));
});

test("on a machine without IPv4", async () => {
  const node = new ShownNode(systemClock);
  node.put(testPod({}, { name: "web", uid: "uid-1" }));
  await using served = await ServedDashboard.start(node, { pages: builtPages, host: "::1" });
  await using page = await browser.newPage();
  await logIn(page, `[::1]:${served.port}`, served);
  await until("the pod is shown", async () => (await textOf(page)).includes("web"));
});

test("names as long as names may be", async () => {
  const node = new ShownNode(systemClock);
  const name = `${"n".repeat(200)}.${"m".repeat(52)}`;
  assert.equal(name.length, 253);
  node.put(testPod({}, { name, uid: "uid-1", namespace: "s".repeat(63) }));
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await using page = await browser.newPage({ viewport: { width: 680, height: 720 } });
  await logIn(page, `127.0.0.1:${served.port}`, served);
  await until("it is shown", async () => (await textOf(page)).includes(name));
  for (const path of ["pods", "pods/uid-1", "logs/uid-1"]) {
    await page.evaluate(`location.hash = "#/${path}"`);
    await until(`${path} is shown`, async () => !/Asking the agent…/.test(await textOf(page)));
    const tooWide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert.equal(tooWide, 0, `${path} scrolls sideways`);
  }
});
