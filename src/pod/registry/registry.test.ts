import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { testObserved, testPod, testSandbox } from "../../../test/support/pods.ts";
import { noResizeLimits } from "../../../test/support/test-engine.ts";
import { Ledger, silentLogger } from "../../ground/base/index.ts";
import {
  configMirrorAnnotation,
  configSourceAnnotation,
  fullName,
  type IdentifiedPod,
  type ObservedPod,
  type PodChange,
  type PodStep,
  type PodUid,
} from "../../ground/model/index.ts";
import { Allocations } from "../resources/index.ts";
import type { PodState, TerminateRequest } from "../workers/index.ts";
import { Admission, type AdmissionVerdict, type Preemption } from "./admission.ts";
import { arePodsKnown } from "./intake.ts";
import { PodRegistry } from "./registry.ts";
import { WantedPods } from "./wanted-pods.ts";

type Meta = Partial<IdentifiedPod["metadata"]>;
const pod = (name: string, metadata: Meta = {}): IdentifiedPod => testPod({}, { name, uid: name, ...metadata });
const uid = (name: string): PodUid => name as PodUid;
const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const never = new AbortController().signal;
const rejected: AdmissionVerdict = { type: "rejected", reason: "OutOfcpu", message: "no cpu left" };

/** Takes pods as workers do, without working on them. */
class Workers {
  readonly pods = new Map<PodUid, { pod: IdentifiedPod | undefined; step: PodState["step"] }>();
  readonly terminated: string[] = [];
  readonly orphans: string[] = [];
  readonly looked: string[] = [];
  /** Pods that can't be handled now. */
  readonly broken = new Set<string>();

  upsert(of: IdentifiedPod): void {
    this.#mayFail(of.metadata.uid);
    this.pods.set(uid(of.metadata.uid), {
      pod: of,
      step: of.metadata.deletionTimestamp === undefined ? "running" : "terminating",
    });
  }
  terminate(of: PodUid, { cause, graceSeconds }: TerminateRequest): void {
    this.#mayFail(of);
    if (this.pods.has(of)) this.terminated.push(`${of} ${cause} ${graceSeconds}`);
  }
  adoptOrphan(of: PodUid, { fullName: name, graceSeconds }: { fullName: string; graceSeconds: number }): void {
    this.pods.set(of, { pod: undefined, step: "terminating" });
    this.orphans.push(`${name} ${graceSeconds}`);
  }
  runtimeChanged(of: PodUid): void {
    this.looked.push(of);
  }
  wake(): void {}
  knows(of: PodUid): boolean {
    return this.pods.has(of);
  }
  stateOf(of: PodUid): PodState | undefined {
    const step = this.pods.get(of)?.step;
    if (step === undefined) return undefined;
    return step === "running"
      ? { step, isPrepared: true, stoppedRemains: undefined, deadlineTimer: undefined }
      : { step: "finished", cause: "completed", returning: undefined, isCleared: false };
  }
  #mayFail(of: string): void {
    if (this.broken.has(of)) throw new Error("no way");
  }
}

class World {
  readonly clock = new FakeClock();
  readonly workers = new Workers();
  readonly ledger = new Ledger<PodUid, PodStep>(this.clock);
  readonly events: string[] = [];
  readonly statuses: string[] = [];
  readonly announced: string[] = [];
  readonly forgotten: string[] = [];
  readonly wereHere = new Set<string>();
  /** Pods in the order in which admission was asked about them, with those that count beside them. */
  readonly judged: string[] = [];
  readonly kept: string[] = [];
  readonly preemptions: { readonly preemption: Preemption; readonly then: () => void }[] = [];
  isRuntimeKnown = true;
  mayStop = true;
  verdict: (of: IdentifiedPod) => AdmissionVerdict = () => ({ type: "admitted" });
  inspect: (of: PodUid) => ObservedPod = () => {
    throw new Error("the runtime does not answer");
  };
  readonly wanted = new WantedPods();
  readonly registry = new PodRegistry({
    wanted: this.wanted,
    workers: this.workers,
    allocations: new Allocations("/nowhere/allocated_pods_state", silentLogger),
    believeGiven: () => {},
    resizeSettings: noResizeLimits,
    admission: new Admission([
      (of, others) => {
        this.judged.push([of, ...others].map(({ metadata }) => metadata.uid).join(" beside "));
        return this.verdict(of);
      },
    ]),
    clock: this.clock,
    log: silentLogger,
    ledger: this.ledger,
    recordEvent: (of, event) => this.events.push(`${of.metadata.uid} ${event.type} ${event.reason} ${event.message}`),
    isRuntimeKnown: () => this.isRuntimeKnown,
    arePodsKnown: () => true,
    mayStop: () => this.mayStop,
    wasHere: (of) => this.wereHere.has(of),
    keepPlace: (of) => this.kept.push(of.metadata.uid),
    preempt: (preemption, then) => this.preemptions.push({ preemption, then }),
    inspect: async (of) => this.inspect(of),
    setStatus: (of, { phase, reason, message }) =>
      this.statuses.push(`${of.metadata.uid} ${phase} ${reason} ${message}`),
    forget: (of) => this.forgotten.push(of),
    announce: (of) => this.announced.push(of.metadata.uid),
  });

  arePodsKnown(): boolean {
    return arePodsKnown({ allReady: () => true }, this.wanted, this.isRuntimeKnown);
  }

  apply(op: PodChange["op"], ...pods: readonly IdentifiedPod[]): void {
    this.registry.apply({ op, source: "api", pods });
  }

  /** As a list from disk: `holds` says what pods have to wait for. */
  assume(pods: readonly IdentifiedPod[], holds: Readonly<Record<string, string>> = {}): void {
    this.registry.apply({ op: "ADD", source: "api", pods, provisional: { hold: (of) => holds[of] } });
  }

  worked(name: string): IdentifiedPod | undefined {
    return this.workers.pods.get(uid(name))?.pod;
  }

  /** The names of pods that workers have. */
  get taken(): readonly string[] {
    return [...this.workers.pods.keys()];
  }

  /** What the pod waits for. */
  block(name: string): string | undefined {
    const block = this.ledger.read(uid(name))?.blocker;
    return block && `${block.reason}: ${block.message}`;
  }
}

test("ADD: an admitted pod is handed to its worker, and shown", () => {
  const world = new World();
  world.apply("ADD", pod("a"), pod("b"));
  assert.deepEqual(world.taken, ["a", "b"]);
  assert.deepEqual(world.announced, ["a", "b"]);
  assert.deepEqual(world.judged, ["a", "b beside a"]);
  assert.equal(world.registry.get(uid("a"))?.metadata.name, "a");
  assert.deepEqual([...world.registry.all()].map(fullName), ["a_default", "b_default"]);
});

test("ADD without pods: a source that wants nothing changes nothing", () => {
  const world = new World();
  world.apply("ADD");
  assert.deepEqual([world.taken, world.judged], [[], []]);
});

for (const op of ["UPDATE", "DELETE"] as const) {
  test(`${op}: the worker gets the new version, nobody is asked again`, () => {
    const world = new World();
    world.apply("ADD", pod("a"));
    world.apply(op, pod("a", op === "DELETE" ? deleting : { labels: { version: "2" } }));
    assert.equal(world.worked("a")?.metadata.deletionTimestamp !== undefined, op === "DELETE");
    assert.equal(world.worked("a"), world.registry.get(uid("a")));
    assert.deepEqual([world.judged.length, world.announced.length], [1, 2]);
  });
}

for (const [name, gates, reaches] of [
  ["a status alone does not reach the worker", [], false],
  ["a status may open a readiness gate", [{ conditionType: "example.com/ready" }], true],
] as const) {
  test(`RECONCILE: ${name}`, () => {
    const world = new World();
    const before = testPod({ readinessGates: gates.map((gate) => ({ ...gate })) }, { uid: "a" });
    const after = { ...before, status: { phase: "Running" } };
    world.apply("ADD", before);
    world.apply("RECONCILE", after);
    assert.equal(world.worked("a"), reaches ? after : before);
    assert.equal(world.registry.get(uid("a")), after);
    assert.deepEqual(world.announced, ["a", "a"]);
  });
}

for (const [name, of, grace] of [
  ["with its own grace", pod("a"), 30],
  ["with the grace it was deleted with", pod("a", { ...deleting, deletionGracePeriodSeconds: 3 }), 3],
  ["with the customary grace", testPod({ terminationGracePeriodSeconds: undefined }, { uid: "a" }), 30],
] as const) {
  test(`REMOVE: the worker ends the pod ${name}`, () => {
    const world = new World();
    world.apply("ADD", of);
    world.apply("REMOVE", of);
    assert.deepEqual(world.workers.terminated, [`a deleted ${grace}`]);
    assert.equal(world.registry.get(uid("a")), undefined);
    assert.deepEqual(world.forgotten, [], "its worker does so when it has gone");
  });
}

test("REMOVE: a pod that never came to a worker is forgotten at once", () => {
  const world = new World();
  world.verdict = () => rejected;
  world.apply("ADD", pod("a"));
  world.apply("REMOVE", pod("a"));
  assert.deepEqual([world.forgotten, world.taken], [["a"], []]);
});

test("a rejected pod fails with reason and message, and stays so however often its source names it", () => {
  const world = new World();
  world.verdict = ({ metadata }) => (metadata.uid === "a" ? rejected : { type: "admitted" });
  world.apply("ADD", pod("a"), pod("b"));
  world.verdict = () => ({ type: "admitted" });
  world.apply("ADD", pod("a"));
  world.apply("UPDATE", pod("a", { labels: { version: "2" } }));
  world.apply("RECONCILE", pod("a"));
  world.registry.reconsider();
  assert.deepEqual(world.taken, ["b"]);
  assert.deepEqual(world.statuses, ["a Failed OutOfcpu Pod was rejected: no cpu left"]);
  assert.deepEqual(world.events, ["a Warning OutOfcpu no cpu left"]);
  assert.deepEqual(world.judged, ["a", "b"], "what was refused holds nothing");
});

test("a rejected pod that is deleted goes to a worker, which tells the API of its end", () => {
  const world = new World();
  world.verdict = () => rejected;
  world.apply("ADD", pod("a"));
  world.apply("DELETE", pod("a", deleting));
  assert.deepEqual(world.taken, ["a"]);
});

test("the same name with another uid is another pod: the old one ends, the new one is judged by itself", () => {
  const world = new World();
  const [old, next] = [pod("old", { name: "web" }), pod("new", { name: "web" })];
  world.apply("ADD", old);
  world.apply("REMOVE", old);
  world.apply("ADD", next);
  assert.deepEqual(world.workers.terminated, ["old deleted 30"]);
  assert.equal(world.worked("new"), next);
  assert.equal(world.registry.get(uid("old")), undefined);
  assert.deepEqual(world.judged, ["old", "new"], "the old one is not wanted any more, and does not count");
});

test("the same name with another uid: what was refused to the old one is not refused to the new one", () => {
  const world = new World();
  world.verdict = ({ metadata }) => (metadata.uid === "old" ? rejected : { type: "admitted" });
  world.apply("ADD", pod("old", { name: "web" }));
  world.apply("REMOVE", pod("old", { name: "web" }));
  world.apply("ADD", pod("new", { name: "web" }));
  assert.deepEqual(world.taken, ["new"]);
});

test("static pods of one full name: both go to workers, and a name found in the runtime is unclaimed until taken", () => {
  const world = new World();
  const annotations = { [configSourceAnnotation]: "file" };
  const [old, next] = [pod("old", { name: "web", annotations }), pod("new", { name: "web", annotations })];
  world.registry.runtimeChanged(uid("old"), "web_default");
  assert.equal(world.wanted.isUnclaimed("web_default"), true);
  world.apply("ADD", next);
  assert.equal(world.wanted.isUnclaimed("web_default"), true, "the new one is not the one that runs");
  world.apply("ADD", old);
  assert.equal(world.wanted.isUnclaimed("web_default"), false);
  assert.deepEqual(world.taken, ["new", "old"]);
  assert.equal(world.wanted.isUnclaimed("other_default"), false);
});

test("mirror pods are no pods of ours", () => {
  const world = new World();
  const mirror = pod("m", { annotations: { [configMirrorAnnotation]: "hash" } });
  for (const op of ["ADD", "UPDATE", "RECONCILE", "REMOVE"] as const) world.apply(op, mirror);
  assert.deepEqual([world.taken, world.announced, world.judged], [[], [], []]);
});

test("an exception inside admission refuses that pod, and no other", () => {
  const world = new World();
  world.verdict = ({ metadata }) => {
    if (metadata.uid === "odd") throw new Error("Cannot convert abc to a BigInt");
    return { type: "admitted" };
  };
  world.apply("ADD", pod("a"), pod("odd"), pod("b"));
  assert.deepEqual(world.taken, ["a", "b"]);
  assert.deepEqual(world.statuses, [
    "odd Failed UnexpectedAdmissionError Pod was rejected: Cannot convert abc to a BigInt",
  ]);
});

test("an exception anywhere else blocks that pod, which is tried again more and more slowly", async () => {
  const world = new World();
  world.workers.broken.add("odd");
  world.apply("ADD", pod("odd"), pod("b"));
  assert.deepEqual(world.taken, ["b"]);
  assert.equal(world.block("odd"), "UnexpectedError: handling its ADD failed: no way");
  const triesAt: number[] = [];
  world.verdict = () => ({ type: "admitted" });
  world.workers.upsert = (): void => {
    triesAt.push(world.clock.monotonic() / 1_000);
    throw new Error("no way");
  };
  await world.clock.advance(200_000);
  assert.deepEqual(triesAt, [1, 3, 7, 15, 31, 63, 123, 183]);
});

test("a change that comes meanwhile has its own try, and the failed one none any more", async () => {
  const world = new World();
  world.workers.broken.add("a");
  world.apply("ADD", pod("a"));
  world.workers.broken.clear();
  const newer = pod("a", { labels: { version: "2" } });
  world.apply("UPDATE", newer);
  assert.equal(world.worked("a"), newer);
  world.workers.pods.clear();
  await world.clock.advance(120_000);
  assert.deepEqual(world.taken, []);
});

test("a removal that failed is tried again, although the pod is known no longer", async () => {
  const world = new World();
  world.apply("ADD", pod("a"));
  world.workers.broken.add("a");
  world.apply("REMOVE", pod("a"));
  world.workers.broken.clear();
  await world.clock.advance(1_000);
  assert.deepEqual(world.workers.terminated, ["a deleted 30"]);
});

test("nothing is decided before the runtime has said what it has; what it has is taken without being asked about", () => {
  const world = new World();
  world.isRuntimeKnown = false;
  world.verdict = () => rejected;
  world.apply("ADD", pod("newcomer"), pod("runs"));
  assert.deepEqual([world.taken, world.statuses], [[], []]);
  assert.match(world.block("runs") ?? "", /waiting for the container runtime to say what runs already/);
  assert.equal(world.arePodsKnown(), false);
  world.isRuntimeKnown = true;
  world.registry.runtimeChanged(uid("runs"), "runs_default");
  assert.equal(world.arePodsKnown(), false);
  world.registry.reconsider();
  assert.deepEqual([world.taken, world.kept], [["runs"], ["runs"]]);
  assert.deepEqual(world.statuses, ["newcomer Failed OutOfcpu Pod was rejected: no cpu left"]);
  assert.equal(world.arePodsKnown(), true);
  assert.equal(world.wanted.isUnclaimed("runs_default"), false);
});

for (const [name, of] of [
  ["is to end", pod("a", deleting)],
  ["has succeeded", { ...pod("a"), status: { phase: "Succeeded" } }],
  ["has failed", { ...pod("a"), status: { phase: "Failed" } }],
] as const) {
  test(`a pod that ${name} asks for nothing: it is taken without being asked about, at once`, () => {
    const world = new World();
    world.isRuntimeKnown = false;
    world.apply("ADD", of);
    assert.deepEqual([world.taken, world.judged], [["a"], []]);
  });
}

test("those that were here before come before newcomers of the same list: what runs first", () => {
  const world = new World();
  world.wereHere.add("known");
  world.registry.runtimeChanged(uid("runs"));
  world.apply("ADD", pod("new"), pod("known"), pod("runs"));
  assert.deepEqual(world.taken, ["runs", "known", "new"]);
});

test("a running pod that admission can't reckon with stays, and is left out when others are judged", () => {
  const world = new World();
  world.verdict = ({ metadata }) => {
    if (metadata.uid === "odd") throw new Error("what it asks for makes no sense");
    return { type: "admitted" };
  };
  world.registry.runtimeChanged(uid("odd"));
  world.apply("ADD", pod("odd"));
  world.apply("ADD", pod("b"));
  assert.deepEqual([world.taken, world.judged.at(-1)], [["odd", "b"], "b"]);
});

test("who has ended no longer counts when others are judged", () => {
  const world = new World();
  world.apply("ADD", pod("a"));
  world.workers.pods.set(uid("a"), { pod: pod("a"), step: "finished" });
  world.apply("ADD", pod("b"));
  assert.equal(world.judged.at(-1), "b");
});

test("undecided: the pod waits, newer versions too, until what it waits for is known", () => {
  const world = new World();
  world.verdict = () => ({ type: "undecided", waitsFor: "the Node" });
  world.apply("ADD", pod("a"));
  const newer = pod("a", { labels: { version: "2" } });
  world.apply("UPDATE", newer);
  assert.deepEqual(world.taken, []);
  assert.equal(world.block("a"), "NotDecidedYet: waiting for the Node");
  world.verdict = () => ({ type: "admitted" });
  world.registry.reconsider();
  assert.equal(world.worked("a"), newer);
});

test("undecided and removed: nothing is left to reconsider", () => {
  const world = new World();
  world.verdict = () => ({ type: "undecided", waitsFor: "the Node" });
  world.apply("ADD", pod("a"));
  world.apply("REMOVE", pod("a"));
  world.verdict = () => ({ type: "admitted" });
  world.registry.reconsider();
  assert.deepEqual([world.taken, world.forgotten], [[], ["a"]]);
});

test("a provisional list holds pods until their source stands by it", () => {
  const world = new World();
  world.assume([pod("held"), pod("free")], { held: "the API server" });
  world.registry.reconsider();
  assert.deepEqual(world.taken, ["free"]);
  assert.equal(world.block("held"), "NotDecidedYet: waiting for the API server");
  world.apply("ADD", pod("held"), pod("free"));
  assert.deepEqual(world.taken, ["free", "held"]);
});

for (const [name, verdict, words] of [
  ["refuses nobody", rejected, /the API server; for now, no cpu left/],
  [
    "stops nobody",
    { type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } },
    /the API server; for now, others would have to stop for want of cpu/,
  ],
] as const) {
  test(`a provisional list ${name}: the pod waits for its source`, () => {
    const world = new World();
    world.verdict = () => verdict;
    world.assume([pod("a")]);
    assert.deepEqual([world.taken, world.statuses, world.preemptions], [[], [], []]);
    assert.match(world.block("a") ?? "", words);
    world.verdict = () => ({ type: "admitted" });
    world.registry.reconsider();
    assert.deepEqual(world.taken, ["a"]);
  });
}

test("preemption: the pod starts, in its newest version, when those in its way have gone, who no longer count", () => {
  const world = new World();
  world.apply("ADD", pod("victim"));
  world.verdict = () => ({ type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } });
  world.apply("ADD", pod("critical"));
  assert.deepEqual(world.taken, ["victim"]);
  assert.deepEqual(world.preemptions[0]?.preemption.victims.map(fullName), ["victim_default"]);
  world.verdict = () => ({ type: "admitted" });
  const newer = pod("critical", { labels: { version: "2" } });
  world.apply("UPDATE", newer);
  assert.equal(world.worked("critical"), undefined, "still waits for room");
  world.apply("ADD", pod("c"));
  assert.equal(world.judged.at(-1), "c beside critical");
  world.preemptions[0]?.then();
  assert.equal(world.worked("critical"), newer);
});

test("preemption: who is removed while waiting for room does not start, even when it comes again and waits anew", () => {
  const world = new World();
  world.verdict = () => ({ type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } });
  world.apply("ADD", pod("critical"));
  world.apply("REMOVE", pod("critical"));
  world.preemptions[0]?.then();
  assert.deepEqual(world.taken, []);
  world.apply("ADD", pod("critical"));
  world.preemptions[0]?.then();
  assert.deepEqual(world.taken, [], "the room was made for the earlier wait");
  world.preemptions[1]?.then();
  assert.deepEqual(world.taken, ["critical"]);
});

test("preemption: who is to end needs no room", () => {
  const world = new World();
  world.verdict = () => ({ type: "admitted", preempts: { victims: [pod("victim")], resource: "cpu" } });
  world.apply("ADD", pod("critical"));
  world.apply("DELETE", pod("critical", deleting));
  assert.deepEqual(world.taken, ["critical"]);
});

test("a change in the runtime goes to the worker of the pod; without one the pod is unclaimed", () => {
  const world = new World();
  world.apply("ADD", pod("a"));
  world.registry.runtimeChanged(uid("a"));
  world.registry.runtimeChanged(uid("stranger"), "stranger_default");
  world.registry.runtimeChanged(uid("stranger"));
  assert.deepEqual(world.workers.looked, ["a"]);
  assert.deepEqual(world.registry.unclaimed(), ["stranger"]);
  assert.equal(world.wanted.isUnclaimed("stranger_default"), true, "a hint without a name does not take the name");
});

const observed = (name: string, graces: readonly number[]): ObservedPod => ({
  uid: uid(name),
  name,
  namespace: "default",
  sandboxes: [testSandbox()],
  containers: graces.map((terminationGraceSeconds, index) => {
    const container = testObserved(`c${index}`);
    return { ...container, annotations: { ...container.annotations, terminationGraceSeconds } };
  }),
  ips: [],
  observedAt: 0,
});

for (const [name, graces, wanted] of [
  ["the longest grace its containers were made with", [5, 40, 10], 40],
  ["a second where they do not say", [], 1],
] as const) {
  test(`an orphan is stopped with ${name}`, async () => {
    const world = new World();
    world.inspect = () => observed("orphan", graces);
    world.registry.runtimeChanged(uid("orphan"), "orphan_default");
    await world.registry.stopIfOrphaned(uid("orphan"), never);
    assert.deepEqual(world.workers.orphans, [`orphan_default ${wanted}`]);
    assert.deepEqual(world.registry.unclaimed(), []);
  });
}

test("no orphan: wanted ones, even those that wait, and those that a source may still name", async () => {
  const world = new World();
  world.inspect = (of) => observed(of, [1]);
  for (const name of ["waits", "unnamed"]) world.registry.runtimeChanged(uid(name), `${name}_default`);
  world.assume([pod("waits")], { waits: "the API server" });
  world.mayStop = false;
  for (const of of world.registry.unclaimed()) await world.registry.stopIfOrphaned(of, never);
  assert.deepEqual(world.workers.orphans, []);
  assert.deepEqual(world.registry.unclaimed(), ["waits", "unnamed"]);
  world.mayStop = true;
  for (const of of world.registry.unclaimed()) await world.registry.stopIfOrphaned(of, never);
  assert.deepEqual(world.workers.orphans, ["unnamed_default 1"]);
});

test("no orphan: one that is named while it is looked at", async () => {
  const world = new World();
  world.registry.runtimeChanged(uid("a"), "a_default");
  world.inspect = (of) => {
    world.apply("ADD", pod("a"));
    return observed(of, [1]);
  };
  await world.registry.stopIfOrphaned(uid("a"), never);
  assert.deepEqual([world.workers.orphans, world.taken], [[], ["a"]]);
});

test("an orphan that can't be inspected is tried again later; one that has gone by then is none", async () => {
  const world = new World();
  world.registry.runtimeChanged(uid("orphan"), "orphan_default");
  await world.registry.stopIfOrphaned(uid("orphan"), never);
  assert.deepEqual(world.registry.unclaimed(), ["orphan"]);
  world.inspect = () => ({ ...observed("orphan", []), sandboxes: [] });
  await world.registry.stopIfOrphaned(uid("orphan"), never);
  assert.deepEqual([world.registry.unclaimed(), world.workers.orphans], [[], []]);
});

test("a refused pod that runs after all is an orphan", async () => {
  const world = new World();
  world.verdict = () => rejected;
  world.apply("ADD", pod("a"));
  world.inspect = (of) => observed(of, [2]);
  world.registry.runtimeChanged(uid("a"), "a_default");
  await world.registry.stopIfOrphaned(uid("a"), never);
  assert.deepEqual(world.workers.orphans, ["a_default 2"]);
});
