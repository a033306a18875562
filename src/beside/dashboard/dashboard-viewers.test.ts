import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { heard, ServedDashboard, ShownNode } from "../../../test/support/dashboard.ts";
import { settle } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { until } from "../../../test/support/until.ts";
import { TaskScope, untilAborted } from "../../ground/base/index.ts";
import { Dashboard } from "./dashboard.ts";

const lastId = (text: string): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? "";

test("viewers are told of changes, and who comes back is told what changed meanwhile", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  node.put(testPod());
  const first = await served.open("api/live");
  const all = heard(first);
  await until("the pod is told", () => all.text.includes('["pod/uid-1",'));
  assert.match(all.text, /^event: begin\n/);
  // Another viewer stays, so that what happens is followed.
  const other = await served.open("api/live");
  other.resume();
  first.destroy();
  const id = lastId(all.text);
  node.put(testPod({}, { name: "other", uid: "uid-2" }));
  node.remove("uid-1");
  await node.clock.advance(100);
  const back = await served.open("api/live", { headers: { "Last-Event-ID": id } });
  const since = heard(back);
  await until("both changes are told", () => since.text.includes("uid-2") && since.text.includes('["pod/uid-1",null]'));
  assert.doesNotMatch(since.text, /event: begin/);
  const stranger = heard(await served.open("api/live", { headers: { "Last-Event-ID": "of-another-agent-7" } }));
  await until("all is told", () => stranger.text.includes("uid-2"));
  assert.match(stranger.text, /^event: begin\n/);
  assert.doesNotMatch(stranger.text, /uid-1/);
});

test("while nobody looks there is no timer and no listener, and the charts go after five minutes", async () => {
  const node = new ShownNode();
  await using served = await ServedDashboard.start(node);
  assert.deepEqual([node.clock.pendingTimers, node.listeners.size, served.loaded], [0, 0, 0]);
  await served.logIn();
  const viewer = await served.open("api/live");
  viewer.resume();
  await until("somebody looks", () => node.listeners.size === 1 && node.clock.pendingTimers > 0);
  viewer.destroy();
  await until("nobody looks", () => node.listeners.size === 0);
  await settle();
  assert.equal(node.clock.pendingTimers, 1, "only that which forgets the charts");
  await node.clock.advance(5 * 60_000);
  assert.equal(node.clock.pendingTimers, 0);
});

test("the twenty-first viewer is told that there are too many", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const viewers = await Promise.all(Array.from({ length: 20 }, () => served.open("api/live")));
  for (const viewer of viewers) viewer.resume();
  const { status, text, headers } = await served.ask("api/live");
  assert.deepEqual([status, headers["retry-after"]], [503, "10"]);
  assert.match(text, /as many pages as may be/);
  viewers[0]?.destroy();
  await until("there is room again", async () => {
    const next = await served.open("api/live");
    next.resume();
    return next.statusCode === 200;
  });
});

test("who does not read costs no memory, and is told the last truth when it reads again", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  const long = "x".repeat(1000);
  for (let count = 0; count < 300; count++) node.put(testPod({}, { name: `${long}-${count}`, uid: `uid-${count}` }));
  const slow = await served.open("api/live");
  slow.pause();
  const before = process.memoryUsage().external;
  for (let round = 0; round < 20; round++) {
    for (let count = 0; count < 300; count++) {
      node.put(testPod({}, { name: `${long}-${count}-${round}`, uid: `uid-${count}` }));
    }
    await node.clock.advance(50);
  }
  assert.ok(process.memoryUsage().external - before < 8 * 2 ** 20, "what is not read does not pile up");
  const all = heard(slow);
  slow.resume();
  await until("the last truth is told", () => all.text.includes("-299-19"));
  slow.destroy();
});

test("who has left before the answer began is not kept", async () => {
  const node = new ShownNode();
  node.put(testPod());
  const scope = new TaskScope();
  const dashboard = new Dashboard(node.ports(), "/nonexistent", scope);
  let began = 0;
  node.copyLog = (_request, _sink, signal) => {
    began++;
    return untilAborted(signal);
  };
  let hasAnswered = false;
  const server = createServer((request, response) => {
    // The gate of the node's API asks others whether the viewer may.
    response.once("close", () => {
      const query = new URLSearchParams("follow");
      const call = { request, response, query };
      const answers = ["api/live", "api/logs/uid-1"].map((path) =>
        dashboard.answer({ ...call, path }, { type: "gate" }),
      );
      void Promise.all(answers).then(() => {
        hasAnswered = true;
      });
    });
    request.socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.address() as AddressInfo;
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`));
  await until("both are answered", () => hasAnswered);
  assert.deepEqual([node.listeners.size, node.clock.pendingTimers, began], [0, 0, 0]);
  server.close();
  await scope.stop();
});

// The charts are kept for some minutes.
for (const { path, timersLeft } of [
  { path: "api/live", timersLeft: 1 },
  { path: "api/logs/uid-1", timersLeft: 0 },
]) {
  test(`who takes nothing of ${path} for long makes room for others, whichever door it came by`, async () => {
    const node = new ShownNode();
    node.put(testPod());
    node.copyLog = (_request, _sink, signal) => untilAborted(signal);
    await using scope = new TaskScope();
    const dashboard = new Dashboard(node.ports(), "/nonexistent", scope, 100);
    const server = createServer((request, response) => {
      const query = new URLSearchParams("follow");
      void dashboard.answer({ request, response, path, query }, { type: "gate" });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const { port } = server.address() as AddressInfo;
    const viewer = connect(port, "127.0.0.1", () => viewer.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    await until("somebody looks", () => node.clock.pendingTimers > 0);
    const isOver = (): boolean => node.listeners.size === 0 && node.clock.pendingTimers === timersLeft;
    await until("nobody looks any more", isOver);
    viewer.destroy();
    server.close();
  });
}

test("many who look are one look, and who leaves is no error", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  let looks = 0;
  let go = (): void => {};
  const slow = new Promise<void>((resolve) => {
    go = resolve;
  });
  node.foresee = async () => {
    looks++;
    await slow;
    return { goes: [], stays: [], freedBytes: 0n, wantedBytes: 0n };
  };
  const left = new AbortController();
  const first = served.ask("api/images", { signal: left.signal });
  await until("somebody looks", () => looks === 1);
  const second = served.ask("api/images");
  left.abort();
  await assert.rejects(first);
  go();
  assert.equal((await second).status, 200);
  assert.equal((await served.ask("api/images")).status, 200);
  assert.equal(looks, 1);
  await node.clock.advance(1_000);
  await served.ask("api/images");
  assert.equal(looks, 2);
  assert.deepEqual(node.errors, []);
});

test("when the agent stops, viewers are let go", async () => {
  const served = await ServedDashboard.start();
  await served.logIn();
  const viewer = await served.open("api/live");
  viewer.resume();
  const closed = new Promise((resolve) => viewer.on("close", resolve));
  viewer.on("error", () => {});
  await served.stop();
  await closed;
  await served[Symbol.asyncDispose]();
});
