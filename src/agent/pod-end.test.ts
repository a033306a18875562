// How pods of the API end, on virtual time: what others are told of it, and when.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter, ignoresTerm, runsForever } from "../beside/hollow/index.ts";
import { amountsOf, type IdentifiedPod, type PodStatus, type PodUid, takenOffStatus } from "../ground/model/index.ts";
import { nodeFitHandler } from "../pod/registry/index.ts";

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

function asking(name: string, cpu: string, priority: number): IdentifiedPod {
  const resources = { requests: { cpu } };
  return enginePod(name, {
    priority,
    terminationGracePeriodSeconds: 8,
    containers: [{ name: "main", image: "busybox:1", resources }],
  });
}

const shown = (node: TestEngine): readonly string[] =>
  node.engine.views.pods().map(({ metadata }) => metadata?.name ?? "");

const crowded = nodeFitHandler({
  node: () => ({ node: { metadata: { name: "n1" } }, isConfirmed: true }),
  allocatable: () => amountsOf({ pods: "10", cpu: "1" }),
});

test("a critical pod starts when those that had to make room for it have stopped", async () => {
  await using node = await TestEngine.start({ source: "api", handlers: [crowded] });
  node.runtime.behave("main", ignoresTerm());
  await node.want(asking("a", "300m", 0), asking("b", "600m", 0));
  await node.until("they run", () => node.running().length === 2);
  await node.want(asking("critical", "500m", 2_000_000_000));
  assert.deepEqual(node.running(), ["a/main", "b/main"], "b has eight seconds");
  assert.ok(node.events.some((event) => event.includes("Preempting") && event.includes("critical pod")));
  assert.equal(node.phase("b"), "Running");
  assert.ok(!node.status("b").conditions?.some(({ type }) => type === "DisruptionTarget"), "not before it has stopped");
  const tookMs = await node.until("it runs", () => node.running().includes("critical/main"));
  assert.ok(tookMs >= 7_000, `${tookMs} ms`);
  assert.deepEqual(node.running(), ["a/main", "critical/main"]);
  const { phase, reason, message, conditions } = node.status("b");
  assert.deepEqual([phase, reason, message], ["Failed", "Preempting", "Preempted in order to admit critical pod"]);
  const target = conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.equal(target?.reason, "TerminationByKubelet");
  assert.equal(target?.message, "Pod was preempted by Kubelet to accommodate a critical pod.");
  await node.advance(120_000);
  assert.deepEqual(node.running(), ["a/main", "critical/main"], "it does not come back");
});

test("a critical pod that goes before there is room for it never starts", async () => {
  await using node = await TestEngine.start({ source: "api", handlers: [crowded] });
  node.runtime.behave("main", ignoresTerm());
  await node.want(asking("a", "800m", 0));
  await node.until("it runs", () => node.running().length === 1);
  await node.want(asking("critical", "500m", 2_000_000_000));
  await node.drop("critical");
  assert.deepEqual(shown(node), ["a"], "nobody shows it any more");
  assert.equal(node.engine.ledger.read("critical" as PodUid), undefined);
  await node.advance(60_000);
  assert.deepEqual(node.running(), []);
  assert.equal(node.phase("a"), "Failed");
});

test("a critical pod that is marked for deletion before there is room for it need not wait for that", async () => {
  await using node = await TestEngine.start({ source: "api", handlers: [crowded] });
  node.runtime.behave("main", ignoresTerm());
  await node.want(asking("a", "800m", 0));
  await node.until("it runs", () => node.running().length === 1);
  const critical = asking("critical", "500m", 2_000_000_000);
  await node.want(critical);
  const deletion = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 };
  await node.want({ ...critical, metadata: { ...critical.metadata, ...deletion } });
  assert.deepEqual(node.running(), ["a/main"], "a still has its time");
  assert.equal(node.engine.workers.stateOf("critical" as PodUid)?.step, "finished");
  await node.drop("critical");
  assert.deepEqual(shown(node), ["a"]);
});

test("a critical static pod that comes back does not start when those have stopped that its first coming waited for", async () => {
  await using node = await TestEngine.start({ source: "file", handlers: [crowded] });
  node.runtime.behave("main", ignoresTerm());
  await node.want(asking("a", "500m", 0), asking("b", "400m", 0));
  await node.until("they run", () => node.running().length === 2);
  const critical = asking("critical", "500m", 2_000_000_000);
  await node.want(critical);
  await node.drop("critical");
  await node.advance(4_000);
  const greedy = asking("critical", "1", 2_000_000_000);
  await node.want(greedy);
  const tookMs = await node.until("it runs", () => node.running().includes("critical/main"));
  assert.deepEqual(node.running(), ["critical/main"], "only when all have stopped");
  assert.ok(tookMs >= 7_000, `${tookMs} ms`);
});

test("an agent that stops leaves no timer behind, however far away a pod's deadline is", async () => {
  await using node = await TestEngine.start();
  const outlive = async (name: string, spec: object): Promise<number> => {
    await node.want(enginePod(name, spec));
    await node.until("it runs", () => node.phase(name) === "Running");
    await node.restart();
    await node.drop(name);
    await node.until("it is gone", () => [...node.engine.workers.uids()].length === 0);
    await node.advance(600_000);
    return node.clock.pendingTimers;
  };
  const usual = await outlive("plain", {});
  assert.equal(await outlive("patient", { activeDeadlineSeconds: 1_000_000_000 }), usual);
});

test("a container that is done stays done, although its probe fails before its end is noticed", async () => {
  await using node = await TestEngine.start({ source: "api", runtime: { events: "absent" } });
  node.runtime.behave("main", runsForever());
  let probes = 0;
  node.runtime.onExec(() => {
    if (++probes === 3) node.runtime.exit("main", 0);
    return { exitCode: 0, afterMs: 1 };
  });
  const livenessProbe = { exec: { command: ["check"] }, periodSeconds: 10, failureThreshold: 1 };
  const containers = [{ name: "main", image: "busybox:1", livenessProbe }];
  await node.want(enginePod("job", { restartPolicy: "OnFailure", containers }));
  await node.until("it is over", () => node.phase("job") === "Succeeded", 60_000);
  assert.equal(node.container("job", "main").restartCount, 0);
  assert.equal(node.runtime.callCount("startContainer"), 1);
});

test("a sidecar's restarts are counted on when its pod gets a new sandbox", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const sidecar = { name: "side", image: "busybox:1", restartPolicy: "Always" as const };
  node.runtime.behave("side", runsForever());
  await node.want(enginePod("web", { initContainers: [sidecar] }));
  await node.until("it runs", () => node.phase("web") === "Running");
  node.runtime.exit("side", 1);
  await node.until("it is restarted", () => node.container("web", "side").restartCount === 1);
  node.runtime.killSandbox(node.runtime.sandboxes()[0]?.id ?? "");
  const startedAgain = (): boolean => node.runtime.callCount("runPodSandbox") === 2 && node.running().length === 2;
  await node.until("it runs in a new sandbox", startedAgain);
  await node.advance(1_000);
  assert.ok(node.container("web", "side").restartCount >= 1, "it must not go back");
});

test("a pod that has succeeded stays so when the next agent evicts it before the runtime says what is left of it", async () => {
  await using node = await TestEngine.start({ source: "api" });
  node.runtime.behave("main", exitsAfter(1_000, 0));
  await node.want(enginePod("web", { restartPolicy: "Never" }));
  await node.until("it has succeeded", () => node.phase("web") === "Succeeded");
  await node.stop();
  const refused = node.runtime.faults.add({
    operation: "listContainers",
    effect: { type: "error", code: "Unavailable", message: "it is away" },
  });
  await node.restart({ ...enginePod("web", { restartPolicy: "Never" }), status: { phase: "Succeeded" } });
  const decision = { reason: "Evicted", message: "the disk ran full", disruption: "the disk ran full" } as const;
  const amendStatus = (status: PodStatus) => takenOffStatus(status, decision, node.clock.now());
  node.engine.workers.terminate("web" as PodUid, { cause: "evicted", graceSeconds: 1, amendStatus, decision });
  await node.advance(5_000);
  refused.remove();
  const phases = new Set<string | undefined>();
  for (let seconds = 0; seconds < 60; seconds++) {
    await node.advance(1_000);
    phases.add(node.phase("web"));
  }
  assert.deepEqual([...phases], ["Succeeded"]);
});
