import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { TerminationOrder } from "./termination-order.ts";

const { signal } = new AbortController();

function podWithSidecars(count: number): ReturnType<typeof testPod> {
  const sidecars = Array.from({ length: count }, (_, index) => testContainer(`s${index}`, { restartPolicy: "Always" }));
  return testPod({ initContainers: [testContainer("init"), ...sidecars], containers: [testContainer("main")] });
}

test("sidecars stop in reverse order, after the regular containers; others wait for nobody", async () => {
  // s1 does not run: nobody waits for it.
  const order = new TerminationOrder(podWithSidecars(4), ["init", "main", "s0", "s2", "s3"]);
  await order.turnOf("main", signal);
  await order.turnOf("init", signal);
  const turns: string[] = [];
  const waits = ["s0", "s2", "s3"].map(async (name) => {
    await order.turnOf(name, signal);
    turns.push(name);
    order.stopped(name);
  });
  await new Promise(setImmediate);
  assert.deepEqual(turns, []);
  order.stopped("main");
  await Promise.all(waits);
  assert.deepEqual(turns, ["s3", "s2", "s0"]);
});

test("a wait ends with its signal", async () => {
  const order = new TerminationOrder(podWithSidecars(1), ["main", "s0"]);
  const grace = new AbortController();
  const wait = order.turnOf("s0", grace.signal);
  grace.abort();
  await wait;
});

test("the order of very many sidecars takes memory by their number, not by its square", async () => {
  const pod = podWithSidecars(5_000);
  const before = process.memoryUsage().heapUsed;
  const order = new TerminationOrder(pod, []);
  // A list of predecessors for each would take 100 MB.
  assert.ok(process.memoryUsage().heapUsed - before < 20_000_000);
  await order.turnOf("s0", signal);
});
