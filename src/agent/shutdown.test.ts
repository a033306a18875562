// The machine is turned off: logind behind a real bus, pods of the API and static ones, all on virtual time.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { refusal } from "../../test/support/fake-api.ts";
import { FakeLogind } from "../../test/support/fake-logind.ts";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { resources } from "../connections/kube/index.ts";
import { never, systemClock } from "../ground/base/index.ts";
import type { PodSpec } from "../ground/model/index.ts";

const config = "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n";
const critical = 2_000_000_000;

const doing = (script: string, priority: number, terminationGracePeriodSeconds: number): Partial<PodSpec> => ({
  priority,
  terminationGracePeriodSeconds,
  containers: [{ name: "main", image: "busybox:1", command: ["sh", "-c", script] }],
});
const stubborn = "trap '' TERM; sleep infinity";
const polite = "trap 'sleep 1; exit 0' TERM; sleep infinity & wait";

const ready = (whole: WholeAgent) =>
  whole.api.object(resources.nodes, { name: "node-1" })?.status?.conditions?.find(({ type }) => type === "Ready");

/** Sockets are real: time moves on while they work, in small steps. */
async function until(whole: WholeAgent, what: string, condition: () => boolean): Promise<void> {
  for (let rounds = 0; !condition(); rounds++) {
    if (rounds > 5_000) throw new Error(`waited in vain for: ${what}`);
    await systemClock.sleep(1, never);
    await whole.advance(5);
  }
}

interface Node extends AsyncDisposable {
  readonly fake: FakeLogind;
  readonly whole: WholeAgent;
}

async function start(
  pods: Readonly<Record<string, Partial<PodSpec>>>,
  staticPods: readonly string[] = [],
): Promise<Node> {
  const fake = await FakeLogind.start();
  const whole = await WholeAgent.build({ config, logind: fake.access });
  mkdirSync(join(whole.directory, "manifests"));
  for (const name of staticPods) {
    const spec = { ...doing(polite, 0, 5) };
    const manifest = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec };
    writeFileSync(join(whole.directory, "manifests", `${name}.json`), JSON.stringify(manifest));
  }
  whole.run();
  await until(whole, "the lock is held", () => fake.held === 1);
  for (const [name, spec] of Object.entries(pods)) whole.create(name, spec);
  const count = Object.keys(pods).length + staticPods.length;
  await until(whole, "all pods run", () => whole.running().length === count && ready(whole)?.status === "True");
  return {
    fake,
    whole,
    async [Symbol.asyncDispose]() {
      await whole[Symbol.asyncDispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}

/** Seconds since the shutdown began at which each pod's container ended. */
async function ends(node: Node, seconds: number): Promise<ReadonlyMap<string, number>> {
  const { whole } = node;
  const found = new Map<string, number>();
  let running = new Set(whole.running());
  for (let second = 1; second <= seconds; second++) {
    await whole.advance(1_000);
    const still = new Set(whole.running());
    for (const name of running) if (!still.has(name)) found.set(name, second);
    running = still;
  }
  return found;
}

async function shutDown({ fake, whole }: Node): Promise<void> {
  fake.prepare(true);
  await until(whole, "it is heard", () => whole.agent.parts.shutdown.report()?.isUnderWay === true);
}

test("pods end in their buckets, each with its bucket's time, and the machine waits for their last status", async () => {
  await using node = await start({
    slow: doing(stubborn, 0, 60),
    short: doing(stubborn, 5, 7),
    good: doing(polite, 0, 60),
    vital: doing(stubborn, critical, 60),
  });
  const { fake, whole } = node;
  assert.equal(fake.maxDelaySeconds, 40, "30 s, and some to report");
  const plan = whole.agent.parts.shutdown.report();
  assert.deepEqual(
    plan?.buckets.map(({ pods }) => pods.map(({ name, graceSeconds }) => `${name} ${graceSeconds}`).sort()),
    [["good 20", "short 7", "slow 20"], ["vital 10"]],
    "the dry run says what follows",
  );
  assert.deepEqual([plan?.allowedSeconds, plan?.totalSeconds, plan?.problem], [40, 30, undefined]);
  await shutDown(node);
  await until(whole, "the node is unready", () => ready(whole)?.status === "False");
  assert.deepEqual([ready(whole)?.reason, ready(whole)?.message], ["KubeletNotReady", "node is shutting down"]);
  whole.create("late");
  await until(whole, "it is refused", () => whole.pod("late")?.status?.phase === "Failed");
  const { reason, message } = whole.pod("late")?.status ?? {};
  assert.deepEqual(
    [reason, message],
    ["NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down."],
  );
  const ended = await ends(node, 29);
  const at = (name: string): number => ended.get(`${name}/main`) ?? -1;
  assert.ok(at("good") <= 2, `good ended after ${at("good")} s`);
  assert.ok(at("short") >= 6 && at("short") <= 8, `short ended after ${at("short")} s`);
  assert.ok(at("slow") >= 19 && at("slow") <= 21, `slow ended after ${at("slow")} s`);
  assert.deepEqual([whole.running(), fake.held], [["vital/main"], 1]);
  await until(whole, "the lock is given back", () => fake.held === 0);
  assert.deepEqual(whole.running(), []);
  for (const name of ["slow", "short", "vital"]) {
    const { phase, reason, message, conditions, containerStatuses } = whole.pod(name)?.status ?? {};
    const said = "Pod was terminated in response to imminent node shutdown.";
    assert.deepEqual([phase, reason, message], ["Failed", "Terminated", said], name);
    const target = conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual([target?.status, target?.reason, target?.message], ["True", "TerminationByKubelet", said], name);
    assert.equal(containerStatuses?.[0]?.state?.terminated?.exitCode, 137, name);
  }
  assert.deepEqual([whole.pod("good")?.status?.phase, whole.pod("good")?.status?.reason], ["Succeeded", undefined]);
  const state = JSON.parse(readFileSync(join(whole.directory, "root/graceful_node_shutdown_state"), "utf8"));
  assert.ok(Date.parse(state.startTime) < Date.parse(state.endTime), JSON.stringify(state));
  await whole.advance(60_000);
  assert.deepEqual(whole.running(), [], "nothing comes back while the machine turns off");
});

test("an API server that is away holds up the machine for as long as logind allows, and no longer", async () => {
  await using node = await start({ web: doing(polite, 0, 5) });
  const { fake, whole } = node;
  whole.api.trouble = () => {
    throw refusal(503, "ServiceUnavailable", "away");
  };
  await shutDown(node);
  await whole.advance(35_000);
  assert.deepEqual([whole.running(), fake.held], [[], 1]);
  await whole.advance(5_000);
  assert.equal(fake.held, 0);
});

test("a shutdown that is called off: what has not ended goes on, and static pods come back", async () => {
  await using node = await start({ slow: doing(stubborn, 0, 60), vital: doing(polite, critical, 5) }, ["fixed"]);
  const { fake, whole } = node;
  await shutDown(node);
  await until(whole, "the static pod has ended", () => !whole.running().some((name) => name.startsWith("fixed")));
  fake.prepare(false);
  await until(whole, "the static pod is back", () => whole.running().some((name) => name.startsWith("fixed")));
  await until(whole, "the node is ready again", () => ready(whole)?.status === "True");
  await whole.advance(60_000);
  assert.deepEqual(whole.running(), ["fixed-node-1/main", "vital/main"]);
  assert.equal(whole.pod("slow")?.status?.phase, "Failed", "what ended for it stays ended");
  assert.equal(fake.held, 1);
  await shutDown(node);
  await until(whole, "the lock is given back", () => fake.held === 0);
  assert.deepEqual(whole.running(), [], "the second time it is true");
});

test("a shutdown that is called off: a static pod whose manifest was taken away meanwhile stays away", async () => {
  await using node = await start({ vital: doing(stubborn, critical, 60) }, ["fixed", "removed"]);
  const { fake, whole } = node;
  await shutDown(node);
  await until(whole, "the static pods have ended", () => whole.running().length === 1);
  rmSync(join(whole.directory, "manifests/removed.json"));
  await whole.advance(3_000);
  fake.prepare(false);
  await until(whole, "the other one is back", () => whole.running().some((name) => name.startsWith("fixed")));
  await whole.advance(30_000);
  assert.deepEqual(
    whole.running().filter((name) => name.startsWith("removed")),
    [],
  );
});

test("another configuration does not cut a shutdown short: it waits until the machine goes on", async () => {
  await using node = await start({ slow: doing(stubborn, 0, 15) });
  const { fake, whole } = node;
  await shutDown(node);
  whole.agent.beginAnew("another configuration");
  await whole.advance(10_000);
  assert.deepEqual([whole.running(), fake.held], [["slow/main"], 1]);
  await until(whole, "the lock is given back", () => fake.held === 0);
  assert.deepEqual(whole.running(), []);
  fake.prepare(false);
  await until(whole, "it begins anew", () => whole.agent.parts.base.ending.wantsAnotherTurn);
});

test("an agent that starts while the machine turns off takes no pods, until that is called off", async () => {
  await using fake = await FakeLogind.start();
  fake.isPreparing = true;
  await using whole = await WholeAgent.build({ config, logind: fake.access });
  mkdirSync(join(whole.directory, "manifests"));
  const manifest = { apiVersion: "v1", kind: "Pod", metadata: { name: "fixed", namespace: "default" } };
  writeFileSync(
    join(whole.directory, "manifests/fixed.json"),
    JSON.stringify({ ...manifest, spec: doing(polite, 0, 5) }),
  );
  whole.create("web");
  whole.run();
  await until(whole, "the pod is refused", () => whole.pod("web")?.status?.reason === "NodeShutdown");
  await whole.advance(20_000);
  assert.deepEqual([whole.running(), ready(whole)?.message], [[], "node is shutting down"]);
  fake.prepare(false);
  await until(whole, "the static pod runs", () => whole.running().length === 1);
  await until(whole, "the lock is held", () => fake.held === 1);
});

test("a bus that goes away: the lock stays, and the next shutdown is heard of", async () => {
  await using node = await start({ web: doing(polite, 0, 5) });
  const { fake, whole } = node;
  fake.dropConnections();
  await until(whole, "it is asked again", () => fake.calls.filter((call) => call === "Inhibit").length === 2);
  await until(whole, "one lock is left", () => fake.held === 1);
  await shutDown(node);
  await until(whole, "the lock is given back", () => fake.held === 0);
  assert.deepEqual(whole.running(), []);
});

test("stopping the agent gives the lock back and ends nothing", async () => {
  await using node = await start({ web: doing(polite, 0, 5) });
  const { fake, whole } = node;
  await whole.stop();
  assert.deepEqual([whole.running(), fake.held], [["web/main"], 0]);
});

test("an agent that took over from another ends the pods that the other one started", async () => {
  await using node = await start({ web: doing(polite, 0, 5), vital: doing(stubborn, critical, 60) }, ["fixed"]);
  const { fake } = node;
  await node.whole.stop();
  await using whole = await WholeAgent.build({ config, logind: fake.access, after: node.whole });
  whole.run();
  await until(whole, "the lock is held again", () => fake.held === 1);
  await until(whole, "the node is ready", () => ready(whole)?.status === "True");
  await shutDown({ ...node, whole });
  await until(whole, "the lock is given back", () => fake.held === 0);
  assert.deepEqual(whole.running(), []);
  for (const name of ["web", "vital", "fixed-node-1"]) {
    const target = whole.pod(name)?.status?.conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.equal(target?.reason, "TerminationByKubelet", name);
  }
});

test("after the machine was off, a static pod runs once more and a pod of the API does not", async () => {
  await using node = await start({ web: doing(polite, 0, 5), stuck: doing(stubborn, 0, 5) }, ["fixed"]);
  const { fake } = node;
  await shutDown(node);
  await until(node.whole, "the lock is given back", () => fake.held === 0);
  await node.whole.stop();
  fake.isPreparing = false;
  const before = node.whole.runtime.containers().length;
  await using whole = await WholeAgent.build({ config, logind: fake.access, after: node.whole });
  whole.run();
  await until(whole, "the static pod runs", () => whole.running().length === 1);
  await whole.advance(600_000);
  assert.deepEqual(whole.running(), ["fixed-node-1/main"]);
  assert.equal(whole.runtime.containers().length - before, 1, "one container was made");
  const { phase, reason, containerStatuses } = whole.pod("fixed-node-1")?.status ?? {};
  assert.deepEqual([phase, reason, containerStatuses?.[0]?.restartCount], ["Running", undefined, 1]);
  assert.equal(containerStatuses?.[0]?.lastState?.terminated?.exitCode, 0);
  assert.equal(whole.pod("web")?.status?.phase, "Succeeded");
  assert.equal(whole.pod("stuck")?.status?.phase, "Failed");
});
