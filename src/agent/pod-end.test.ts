// How pods of the API end, on virtual time: what others are told of it, and when.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { runsForever } from "../hollow/index.ts";
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

test("a container that its postStart hook ends again and again waits as any that crashes", async () => {
  await using node = await TestEngine.start({ source: "api" });
  node.runtime.behave("main", runsForever());
  const lifecycle = { postStart: { exec: { command: ["sh", "-c", "exit 7"] } } };
  await node.want(enginePod("web", { containers: [{ name: "main", image: "busybox:1", lifecycle }] }));
  const waiting = () => node.container("web", "main").state?.waiting;
  await node.until("it waits", () => waiting()?.reason === "CrashLoopBackOff");
  assert.match(waiting()?.message ?? "", /^back-off 10s restarting failed container=main/);
  assert.equal(node.container("web", "main").restartCount, 1);
  assert.ok(node.events.some((event) => event.includes("BackOff")));
  const tookMs = await node.until("it starts again", () => node.container("web", "main").restartCount === 2);
  assert.ok(tookMs > 5_000 && tookMs <= 11_000, `${tookMs} ms`);
});
