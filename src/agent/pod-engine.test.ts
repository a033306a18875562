// The engine on virtual time: what can't be seen, or not in good time, on a real node.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter, ignoresTerm, runsForever } from "../beside/hollow/index.ts";
import type { IdentifiedPod, PodStatus, PodUid } from "../ground/model/index.ts";
import { type AdmissionHandler, hostPortsHandler } from "../pod/registry/index.ts";

test("the crash back-off: none, then 10 s doubling to five minutes; forgotten after ten quiet minutes", async () => {
  await using node = await TestEngine.start();
  node.runtime.behave("main", exitsAfter(1_000, 1));
  await node.want(enginePod("crash"));
  const waits: number[] = [];
  for (let restarts = 1; restarts <= 9; restarts++) {
    await node.until(`restart ${restarts}`, () => node.container("crash", "main").restartCount === restarts);
    const [newest, older] = node.runtime.containers().toReversed();
    assert.ok(newest?.life.step === "running" && older?.life.step === "exited");
    waits.push(Math.round(Number(newest.life.startedAt - older.life.finishedAt) / 1e9));
  }
  assert.deepEqual(waits, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
  node.runtime.behave("main", runsForever());
  await node.until("it runs", () => node.container("crash", "main").restartCount === 10);
  await node.advance(601_000);
  node.runtime.behave("main", exitsAfter(1_000, 1));
  node.runtime.exit("main", 1);
  const first = await node.until(
    "restart after a quiet time",
    () => node.container("crash", "main").restartCount === 11,
  );
  assert.ok(first < 1_000, `waited ${first} ms`);
});

test("ephemeral containers: started beside the others, never again, never part of the phase", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const pod = enginePod("web", { initContainers: [{ name: "setup", image: "busybox:1" }] });
  node.runtime.behave("setup", exitsAfter(60_000, 0));
  node.runtime.behave("debug", exitsAfter(5_000, 3));
  await node.want(pod);
  const debug = { name: "debug", image: "busybox:1", targetContainerName: "main" };
  const debugged = enginePod("web", { ...pod.spec, ephemeralContainers: [{ ...debug, targetContainerName: "setup" }] });
  await node.want(debugged);
  assert.deepEqual(node.running(), ["web/debug", "web/setup"], "even while the pod is being set up");
  const { ready, started, state } = node.container("web", "debug");
  assert.deepEqual([ready, started, state?.running !== undefined], [false, undefined, true]);
  assert.equal(node.phase("web"), "Pending");
  await node.advance(61_000);
  assert.deepEqual(node.running(), ["web/main"]);
  assert.equal(node.container("web", "debug").state?.terminated?.exitCode, 3);
  assert.equal(node.container("web", "debug").restartCount, 0);
  assert.equal(node.phase("web"), "Running");
  assert.ok(conditionOf(node.status("web"), "Ready"));
  const lost = { ...debug, name: "lost", targetContainerName: "nobody" };
  await node.want(enginePod("web", { ...pod.spec, ephemeralContainers: [{ ...debug }, lost] }));
  const { reason, message } = node.container("web", "lost").state?.waiting ?? {};
  assert.deepEqual([reason, message], ["CreateContainerConfigError", "unable to find target container nobody"]);
  await node.advance(120_000);
  assert.deepEqual(node.running(), ["web/main"], "the one that ended does not come back");
});

test("an agent that restarts goes on where it was: ids, counts, back-off", async () => {
  await using node = await TestEngine.start();
  node.runtime.behave("crash", exitsAfter(1_000, 1));
  await node.want(enginePod("web"), enginePod("crash", { containers: [{ name: "crash", image: "busybox:1" }] }));
  await node.until("waits 20 s", () =>
    /back-off 20s/.test(node.container("crash", "crash").state?.waiting?.message ?? ""),
  );
  const before = node.status("web");
  for (let round = 0; round < 5; round++) {
    await node.advance(500);
    await node.restart();
    await node.advance(500);
  }
  assert.deepEqual(node.status("web"), before);
  assert.equal(node.container("crash", "crash").restartCount, 2);
  await node.until("waits 40 s", () =>
    /back-off 40s/.test(node.container("crash", "crash").state?.waiting?.message ?? ""),
  );
  assert.equal(node.container("crash", "crash").restartCount, 3);
});

test("a refused pod says why, and leaves when its manifest does", async () => {
  const refuse: AdmissionHandler = ({ metadata }) =>
    metadata.name === "refused" ? { type: "rejected", reason: "NodePorts", message: "taken" } : { type: "admitted" };
  await using node = await TestEngine.start({ handlers: [refuse] });
  await node.want(enginePod("refused"), enginePod("web"));
  const { phase, reason, message } = node.status("refused");
  assert.deepEqual([phase, reason, message], ["Failed", "NodePorts", "Pod was rejected: taken"]);
  assert.deepEqual(
    node.events.filter((event) => event.startsWith("refused")),
    ["refused NodePorts: taken"],
  );
  await node.drop("refused");
  assert.deepEqual(
    node.engine.views.pods().map(({ metadata }) => metadata?.name),
    ["web"],
  );
});

test("a restart of the agent does not let a newcomer take the place of what runs", async () => {
  await using node = await TestEngine.start({ handlers: [hostPortsHandler] });
  const ports = [{ containerPort: 80, hostPort: 80, protocol: "TCP" }];
  const web = (name: string): IdentifiedPod => enginePod(name, { containers: [{ name, image: "busybox:1", ports }] });
  await node.want(web("old"));
  await node.want(web("newcomer"));
  assert.deepEqual([node.phase("old"), node.status("newcomer").reason], ["Running", "NodePorts"]);
  node.forget("old", "newcomer");
  await node.stop();
  await node.restart(web("newcomer"), web("old"));
  await node.advance(5_000);
  assert.deepEqual([node.phase("old"), node.status("newcomer").reason], ["Running", "NodePorts"]);
  assert.deepEqual(node.running(), ["old/old"]);
});

test("what runs goes on after a restart of the agent although it would be refused now, and leaves no trace in the end", async () => {
  let isStrict = false;
  const refuse: AdmissionHandler = () =>
    isStrict ? { type: "rejected", reason: "SysctlForbidden", message: "no more" } : { type: "admitted" };
  await using node = await TestEngine.start({ handlers: [refuse] });
  await node.want(enginePod("web"));
  isStrict = true;
  await node.restart(enginePod("late"));
  await node.advance(60_000);
  assert.deepEqual(node.running(), ["web/main"]);
  assert.deepEqual([node.phase("late"), node.status("late").reason], ["Failed", "SysctlForbidden"]);
  await node.drop("web", "late");
  await node.advance(60_000);
  assert.deepEqual([node.engine.views.pods(), node.runtime.sandboxes()], [[], []]);
});

test("a changed image restarts its container only, whatever the policy; other edits restart nothing", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const containers = [
    { name: "main", image: "busybox:1" },
    { name: "side", image: "busybox:1" },
  ];
  const pod = enginePod("web", { restartPolicy: "Never", containers });
  await node.want(pod);
  const { containerID } = node.container("web", "side");
  await node.want(enginePod("web", pod.spec, { labels: { edited: "yes" } }));
  assert.equal(node.runtime.callCount("stopContainer"), 0);
  const [main, side] = pod.spec.containers;
  assert.ok(main !== undefined && side !== undefined);
  await node.want(enginePod("web", { ...pod.spec, containers: [{ ...main, image: "busybox:2" }, side] }));
  await node.until("the new image runs", () => node.container("web", "main").image.includes("busybox:2"), 60_000);
  assert.equal(node.container("web", "side").containerID, containerID);
  assert.ok(node.events.includes("web Killing: Container main definition changed, will be restarted"));
  const kills = node.engine.ledger.read("web" as PodUid)?.entries.filter(({ step }) => step === "kill") ?? [];
  const why = "Container main definition changed, will be restarted";
  assert.deepEqual(
    kills.map(({ subject, outcome, message }) => ({ subject, outcome, message })),
    [{ subject: "main", outcome: "ok", message: why }],
  );
  assert.equal(node.phase("web"), "Running");
});

test("deleted through the API: stopped with its grace, which may shrink; a terminal phase only at the end", async () => {
  await using node = await TestEngine.start({ source: "api" });
  node.runtime.behave("main", ignoresTerm());
  const pod = enginePod("web");
  await node.want(pod);
  const deleting = (graceSeconds: number) =>
    enginePod("web", pod.spec, {
      deletionTimestamp: new Date(node.clock.now()).toISOString(),
      deletionGracePeriodSeconds: graceSeconds,
    });
  await node.want(deleting(60));
  await node.advance(20_000);
  assert.equal(node.phase("web"), "Running");
  assert.deepEqual(node.running(), ["web/main"]);
  const told: string[] = [];
  node.engine.statuses.onChange((_, { phase, containerStatuses: [main] = [] }) => {
    told.push(`${phase} ${main?.state?.terminated?.exitCode ?? "running"}`);
  });
  await node.want(deleting(5));
  const took = await node.until("it is gone", () => node.runtime.sandboxes().length === 0, 60_000);
  assert.ok(took <= 6_000, `stopped ${took} ms after the shorter grace`);
  assert.deepEqual(told, ["Failed 137"]);
});

test("a readiness gate that somebody else opens makes the pod ready", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const pod = enginePod("web", { readinessGates: [{ conditionType: "example.com/open" }] });
  await node.want(pod);
  await node.advance(5_000);
  const ready = (): string | undefined =>
    node.engine.statuses.get("web" as PodUid)?.conditions?.find(({ type }) => type === "Ready")?.status;
  assert.equal(ready(), "False");
  const conditions = [{ type: "example.com/open", status: "True" }];
  await node.want({ ...pod, status: { ...node.engine.statuses.get("web" as PodUid), conditions } });
  await node.advance(1_000);
  assert.equal(ready(), "True");
});

function conditionOf({ conditions = [] }: PodStatus, type: string): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === "True");
}
