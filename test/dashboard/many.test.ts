import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Clock, systemClock } from "../../src/ground/base/index.ts";
import { builtPages, ServedDashboard, ShownNode } from "../support/dashboard.ts";
import { browserPath } from "../support/dashboard-lab.ts";
import { testPod } from "../support/pods.ts";
import { until } from "../support/until.ts";

let browser: Browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: browserPath,
    args: ["--no-sandbox", "--js-flags=--expose-gc", "--enable-precise-memory-info"],
  });
});
after(() => browser.close());

async function visit(served: ServedDashboard<Clock>): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${served.port}/dashboard/#token=${await served.token()}`);
  await page.waitForSelector(".link-state");
  return page;
}

const textOf = async (page: Page): Promise<string> => (await page.locator("main").textContent()) ?? "";

function running(count: number) {
  const pod = testPod({}, { name: `pod-${String(count).padStart(3, "0")}`, uid: `uid-${count}` });
  const ready = { type: "Ready", status: "True" };
  return { ...pod, status: { phase: "Running", conditions: [ready], podIP: `10.0.0.${count % 250}` } };
}

test("five hundred pods: only what is seen is drawn, and all can be found", async () => {
  const node = new ShownNode(systemClock);
  for (let count = 0; count < 500; count++) node.put(running(count));
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await using page = await visit(served);
  await page.evaluate("location.hash = '#/pods'");
  await until("the pods are there", async () => (await textOf(page)).includes("pod-000"));
  assert.ok((await page.locator("tbody tr").count()) < 150);
  assert.equal(await page.locator("table").getAttribute("aria-rowcount"), "501");
  await page.evaluate("scrollTo(0, document.body.scrollHeight)");
  await until("the last is drawn", async () => (await textOf(page)).includes("pod-499"));
  assert.doesNotMatch(await textOf(page), /pod-000/);
  await page.getByRole("searchbox").fill("pod-123");
  await until("one is found", async () => (await page.locator("tbody tr").count()) === 1);
  await page.getByRole("searchbox").fill("");
  await page.keyboard.press("Escape");
  await page.evaluate("scrollTo(0, 0)");
  await page.locator("h1").click();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.type"), "search");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await until("its page opens by the keyboard", async () => page.url().includes("#/pods/uid-"));
});

test("an hour of churn leaves the browser as it was", async (t) => {
  const node = new ShownNode(systemClock);
  for (let count = 0; count < 100; count++) node.put(running(count));
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await using page = await visit(served);
  await page.evaluate("location.hash = '#/pods'");
  await until("the pods are there", async () => (await textOf(page)).includes("pod-000"));
  const churn = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const [gone, come] = [round % 100, 1000 + round];
      node.remove(`uid-${gone}`);
      node.put(running(come));
      node.remove(`uid-${come}`);
      node.put(running(gone));
      if (round % 20 === 0) await page.waitForTimeout(40);
    }
  };
  const heap = async (): Promise<number> => {
    await page.waitForTimeout(300);
    return Number(await page.evaluate("(gc(), gc(), performance.memory.usedJSHeapSize)"));
  };
  await churn(300);
  const begin = await heap();
  // As many changes as a node with a restart every second has in an hour.
  await churn(3_600);
  const grown = (await heap()) - begin;
  t.diagnostic(`heap grew by ${Math.round(grown / 1024)} KiB`);
  assert.ok(grown < 5 * 2 ** 20, `${grown} bytes`);
});

test("no pods, and an agent whose clock is five minutes ahead", async () => {
  const ahead: Clock = { ...systemClock, now: () => systemClock.now() + 300_000 };
  const node = new ShownNode(ahead);
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await using page = await visit(served);
  await until("it is shown", async () => (await textOf(page)).includes("0 pods"));
  await page.evaluate("location.hash = '#/pods'");
  await until("it is said", async () => (await textOf(page)).includes("This node has no pods."));
  node.put({
    ...running(1),
    metadata: { ...running(1).metadata, creationTimestamp: new Date(ahead.now()).toISOString() },
  });
  await until("the age is by the agent's clock", async () => {
    const [age = ""] = await page.locator("tbody time").allTextContents();
    return /^\d{1,2} s$/.test(age);
  });
});

test("the twenty-first viewer is told so, and sees everything once there is room", async () => {
  const node = new ShownNode(systemClock);
  node.put(running(7));
  await using served = await ServedDashboard.start(node, { pages: builtPages });
  await served.logIn();
  const viewers = await Promise.all(Array.from({ length: 20 }, () => served.open("api/live")));
  for (const viewer of viewers) viewer.resume();
  await using page = await visit(served);
  await until("it is told", async () => (await textOf(page)).includes("as many pages as may be are open already"));
  viewers[0]?.destroy();
  await until("it is let in", async () => (await page.locator(".link-state.good").count()) === 1);
});

test("an address that was used already says what to do", async () => {
  await using served = await ServedDashboard.start(new ShownNode(systemClock), { pages: builtPages });
  const token = await served.token();
  await served.logIn(token);
  await using page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${served.port}/dashboard/#token=${token}`);
  await until("it is said", async () => (await textOf(page)).includes("Run “nodelet dashboard” for a new address"));
  assert.doesNotMatch(page.url(), /token/, "nobody bookmarks a token");
});
