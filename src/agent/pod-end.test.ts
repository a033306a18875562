// How pods of the API end, on virtual time: what others are told of it, and when.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import type { IdentifiedPod } from "../model/index.ts";

function deleted(pod: IdentifiedPod, graceSeconds = 30): IdentifiedPod {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: graceSeconds } };
}

test("a deleted pod may leave the API once it has stopped; clearing it away takes its time", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const finished: string[] = [];
  node.engine.workers.onFinished((uid) => finished.push(uid));
  await node.want(enginePod("web"));
  await node.until("it runs", () => node.phase("web") === "Running");
  const slow = node.runtime.faults.add({ operation: "removeContainer", effect: { type: "hang" } });
  await node.want(deleted(enginePod("web")));
  await node.until("others are told", () => finished.includes("web"));
  assert.deepEqual(node.running(), []);
  assert.equal(node.phase("web"), "Succeeded");
  assert.equal(node.runtime.containers().length, 1);
  await node.drop("web");
  assert.equal(node.phase("web"), "Succeeded", "what is left of it is still known");
  slow.remove();
  await node.until("it is cleared away", () => node.runtime.containers().length === 0);
  await node.until("it is forgotten", () => node.phase("web") === undefined);
});

test("pods whose remains can't be cleared away hold up no others", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const names = ["a", "b", "c", "d", "e"];
  await node.want(...names.map((name) => enginePod(name)));
  await node.until("they run", () => names.every((name) => node.phase(name) === "Running"));
  for (const podUid of ["a", "b", "c"]) {
    node.runtime.faults.add({ operation: "removePodSandbox", podUid, effect: { type: "hang" } });
  }
  await node.want(...names.map((name) => deleted(enginePod(name))));
  await node.drop(...names);
  await node.until("the others are gone", () => ["d", "e"].every((name) => node.phase(name) === undefined), 60_000);
  assert.deepEqual(node.running(), []);
});
