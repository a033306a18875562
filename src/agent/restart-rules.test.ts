// What a start of the agent may do to pods: nothing that runs is stopped or refused for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { amountsOf, type IdentifiedPod, type PodSpec, type PodUid } from "../ground/model/index.ts";
import { type AdmissionHandler, hostPortsHandler, type JudgingNode, nodeFitHandler } from "../pod/registry/index.ts";

const node = { metadata: { name: "n1", labels: { disk: "ssd" } } };

/** The Node as the agent knows it, which tests change. */
class Knowledge {
  node: JudgingNode | undefined = { node, isConfirmed: true };
  cpu = "8";
  readonly handlers: readonly AdmissionHandler[] = [
    nodeFitHandler({
      node: () => this.node,
      allocatable: () => amountsOf({ pods: "100", cpu: this.cpu }),
    }),
    hostPortsHandler,
  ];
}

const byNodeName = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] }],
    },
  },
};
const byLabel = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In", values: ["ssd"] }] }],
    },
  },
};
const choosy: readonly IdentifiedPod[] = [
  enginePod("daemon", { affinity: byNodeName }),
  enginePod("selecting", { nodeSelector: { disk: "ssd" } }),
  enginePod("affine", { affinity: byLabel }),
  enginePod("plain"),
];
const names = choosy.map(({ metadata }) => `${metadata.name}/main`).sort();
const ids = (engine: TestEngine): readonly string[] =>
  engine.runtime
    .containers()
    .filter(({ life }) => life.step === "running")
    .map(({ id }) => id)
    .sort();
const blocker = (engine: TestEngine, uid: string): string | undefined =>
  engine.engine.ledger.read(uid as PodUid)?.blocker?.message;

for (const source of ["api", "file"] as const) {
  test(`pods from ${source} that choose their node go on when the agent is started before the Node is known`, async () => {
    const knowledge = new Knowledge();
    await using engine = await TestEngine.start({ source, handlers: knowledge.handlers });
    await engine.want(...choosy);
    await engine.until("all run", () => engine.running().length === choosy.length);
    const before = ids(engine);
    knowledge.node = undefined;
    await engine.restart();
    await engine.advance(60_000);
    assert.deepEqual(ids(engine), before, "the same containers run on");
    for (const { metadata } of choosy) assert.equal(engine.phase(metadata.uid), "Running", metadata.name);
    knowledge.node = { node, isConfirmed: true };
    engine.engine.reconsider();
    await engine.advance(60_000);
    assert.deepEqual(ids(engine), before);
  });
}

for (const [what, change] of [
  [
    "its label is gone",
    (knowledge: Knowledge) => (knowledge.node = { node: { metadata: { name: "n1" } }, isConfirmed: true }),
  ],
  ["the node has become smaller", (knowledge: Knowledge) => (knowledge.cpu = "1m")],
  [
    "a taint has come",
    (knowledge: Knowledge) =>
      (knowledge.node = {
        node: { ...node, spec: { taints: [{ key: "k", effect: "NoExecute" }] } },
        isConfirmed: true,
      }),
  ],
] as const) {
  test(`a pod that runs is not refused after a restart although ${what}; a newcomer is`, async () => {
    const knowledge = new Knowledge();
    await using engine = await TestEngine.start({ source: "api", handlers: knowledge.handlers });
    const asking: Partial<PodSpec> = {
      nodeSelector: { disk: "ssd" },
      containers: [{ name: "main", image: "busybox:1", resources: { requests: { cpu: "100m" } } }],
    };
    await engine.want(enginePod("old", asking));
    await engine.until("it runs", () => engine.running().length === 1);
    const before = ids(engine);
    change(knowledge);
    await engine.restart(enginePod("new", asking));
    await engine.advance(60_000);
    assert.deepEqual(ids(engine), before);
    assert.equal(engine.phase("old"), "Running");
    assert.equal(engine.phase("new"), "Failed");
  });
}

test("a newcomer waits for the Node, says so, and is decided about when it is there", async () => {
  const knowledge = new Knowledge();
  knowledge.node = undefined;
  await using engine = await TestEngine.start({ source: "api", handlers: knowledge.handlers });
  await engine.want(...choosy, enginePod("misfit", { nodeSelector: { disk: "tape" } }));
  await engine.advance(60_000);
  assert.deepEqual(engine.running(), []);
  assert.equal(engine.phase("daemon"), undefined, "neither refused nor started");
  assert.equal(blocker(engine, "daemon"), "waiting for the Node");
  knowledge.node = { node, isConfirmed: true };
  engine.engine.reconsider();
  await engine.until("all run", () => engine.running().length === choosy.length);
  assert.deepEqual(engine.running(), names);
  assert.equal(engine.phase("misfit"), "Failed");
  assert.equal(blocker(engine, "daemon"), undefined);
});

test("a static pod that asks for nothing of the Node does not wait for it", async () => {
  const knowledge = new Knowledge();
  knowledge.node = undefined;
  await using engine = await TestEngine.start({ source: "file", handlers: knowledge.handlers });
  await engine.want(...choosy);
  await engine.until("it runs", () => engine.running().length === 1);
  assert.deepEqual(engine.running(), ["plain/main"]);
});

test("nobody is refused for good by a Node that the API server has not confirmed", async () => {
  const knowledge = new Knowledge();
  knowledge.node = { node: { metadata: { name: "n1" } }, isConfirmed: false };
  await using engine = await TestEngine.start({ source: "api", handlers: knowledge.handlers });
  await engine.want(...choosy);
  await engine.until("those that fit run", () => engine.running().length === 2);
  assert.deepEqual(engine.running(), ["daemon/main", "plain/main"]);
  assert.match(blocker(engine, "selecting") ?? "", /waiting for the API server/);
  knowledge.node = { node, isConfirmed: true };
  engine.engine.reconsider();
  await engine.until("all run", () => engine.running().length === choosy.length);
});

test("nothing is decided before the runtime has said what runs", async () => {
  const knowledge = new Knowledge();
  await using engine = await TestEngine.start({ source: "api", handlers: knowledge.handlers });
  await engine.want(enginePod("old", { nodeSelector: { disk: "ssd" } }));
  await engine.until("it runs", () => engine.running().length === 1);
  knowledge.node = { node: { metadata: { name: "n1" } }, isConfirmed: true };
  const hang = engine.runtime.faults.add({ operation: "listPodSandbox", effect: { type: "hang" } });
  await engine.restart(enginePod("new"));
  await engine.advance(30_000);
  assert.equal(blocker(engine, "new"), "waiting for the container runtime to say what runs already");
  hang.remove();
  await engine.until("both run", () => engine.running().length === 2);
  assert.equal(engine.phase("old"), "Running");
});

test("a pod that breaks an admission handler is refused, alone", async () => {
  const throwing: AdmissionHandler = (pod) => {
    if (pod.metadata.name === "odd") throw new RangeError("cannot convert abc to a BigInt");
    return { type: "admitted" };
  };
  await using engine = await TestEngine.start({ source: "api", handlers: [throwing] });
  await engine.want(enginePod("odd"), enginePod("good"));
  await engine.until("the other runs", () => engine.running().length === 1);
  assert.equal(engine.status("odd").reason, "UnexpectedAdmissionError");
  assert.equal(engine.phase("odd"), "Failed");
  await engine.drop("odd");
  await engine.want(enginePod("later"));
  await engine.until("others come", () => engine.running().length === 2);
});

test("a running pod that breaks the reckoning keeps nobody else from being admitted", async () => {
  let isBroken = false;
  const reckoning: AdmissionHandler = (pod, others) => {
    if (isBroken && [pod, ...others].some(({ metadata }) => metadata.name === "odd")) throw new Error("odd quantity");
    return { type: "admitted" };
  };
  await using engine = await TestEngine.start({ source: "api", handlers: [reckoning] });
  await engine.want(enginePod("odd"));
  await engine.until("it runs", () => engine.running().length === 1);
  isBroken = true;
  await engine.restart(enginePod("good"));
  await engine.until("both run", () => engine.running().length === 2);
  assert.equal(engine.phase("odd"), "Running");
});

test("a pod that can't be handled is tried again, and holds up nobody", async () => {
  await using engine = await TestEngine.start({ source: "api" });
  let tries = 0;
  const status = {
    get phase(): string {
      tries++;
      if (tries < 4) throw new Error("not now");
      return "Pending";
    },
  };
  await engine.want({ ...enginePod("odd"), status }, enginePod("good"));
  await engine.until("the good one runs", () => engine.running().includes("good/main"), 1_000);
  await engine.until("the odd one runs after all", () => engine.running().includes("odd/main"), 60_000);
});

test("a provisional list stops nothing, starts only what it may, and shows why the others wait", async () => {
  await using engine = await TestEngine.start({ source: "api" });
  await engine.want(enginePod("kept"), enginePod("unlisted"), enginePod("gone"));
  await engine.until("all run", () => engine.running().length === 3);
  const before = ids(engine);
  engine.forget("unlisted", "gone");
  await engine.restartUnheard();
  for (const pod of [enginePod("held"), enginePod("daemon")]) engine.intend(pod);
  await engine.assume((uid) => (uid === "held" ? "the API server" : undefined));
  await engine.until("what may start runs", () => engine.running().length === 4);
  await engine.advance(600_000);
  assert.deepEqual(engine.running(), ["daemon/main", "gone/main", "kept/main", "unlisted/main"]);
  assert.ok(
    before.every((id) => ids(engine).includes(id)),
    "the same containers",
  );
  assert.equal(blocker(engine, "held"), "waiting for the API server");
  assert.deepEqual(await engine.engine.podsInUse(AbortSignal.timeout(1_000)), undefined, "nothing is swept away");
  await engine.want(enginePod("unlisted"));
  await engine.advance(120_000);
  assert.deepEqual(engine.running(), ["daemon/main", "held/main", "kept/main", "unlisted/main"]);
  assert.equal(blocker(engine, "held"), undefined);
});

test("a held pod that the API has marked for deletion meanwhile is never started", async () => {
  await using engine = await TestEngine.start({ source: "api" });
  await engine.restartUnheard();
  engine.intend(enginePod("held"));
  await engine.assume(() => "the API server");
  const deletion = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 };
  await engine.want(enginePod("held", {}, deletion));
  await engine.advance(60_000);
  assert.equal(engine.runtime.callCount("runPodSandbox"), 0);
});

test("a static pod that was removed or edited while the agent was away ends although the API has not spoken", async () => {
  await using engine = await TestEngine.start({ source: "file", awaited: "api" });
  await engine.want(enginePod("old"));
  await engine.until("it runs", () => engine.running().length === 1);
  engine.forget("old");
  await engine.restart(enginePod("new"));
  await engine.until("only the new one runs", () => engine.running().join() === "new/main", 60_000);
});

test("a static pod that is removed ends although the API has not spoken", async () => {
  await using engine = await TestEngine.start({ source: "file", awaited: "api" });
  await engine.want(enginePod("old"));
  await engine.until("it runs", () => engine.running().length === 1);
  await engine.drop("old");
  await engine.until("it is gone", () => engine.running().length === 0, 60_000);
});

for (const [what, verdict] of [
  ["refused", { type: "rejected", reason: "OutOfcpu", message: "the node has too little cpu" }],
  ["given the room of others", { type: "admitted", preempts: { victims: [enginePod("old")], resource: "cpu" } }],
] as const) {
  test(`a pod of a provisional list is not ${what}: it waits, and starts when the API has spoken`, async () => {
    let isOffline = false;
    const judge: AdmissionHandler = ({ metadata }) =>
      isOffline && metadata.name === "daemon" ? verdict : { type: "admitted" };
    await using engine = await TestEngine.start({ source: "api", handlers: [judge] });
    await engine.want(enginePod("old"));
    await engine.until("it runs", () => engine.running().length === 1);
    await engine.restartUnheard();
    isOffline = true;
    engine.intend(enginePod("daemon"));
    await engine.assume(() => undefined);
    engine.engine.reconsider();
    await engine.advance(60_000);
    assert.equal(engine.phase("daemon"), undefined, "nothing is said of it");
    assert.match(blocker(engine, "daemon") ?? "", /^waiting for the API server; for now, .*cpu/);
    assert.deepEqual(engine.running(), ["old/main"]);
    isOffline = false;
    await engine.want();
    await engine.until("both run", () => engine.running().length === 2);
    assert.equal(engine.phase("daemon"), "Running");
  });
}

test("a pod that was refused stays refused when its source names it again", async () => {
  let isFull = true;
  const judge: AdmissionHandler = () =>
    isFull ? { type: "rejected", reason: "OutOfcpu", message: "too little cpu" } : { type: "admitted" };
  await using engine = await TestEngine.start({ source: "api", handlers: [judge] });
  await engine.want(enginePod("late"));
  assert.equal(engine.phase("late"), "Failed");
  isFull = false;
  await engine.want(enginePod("late", {}, { labels: { a: "b" } }));
  engine.engine.reconsider();
  await engine.advance(60_000);
  assert.deepEqual(engine.running(), []);
  assert.equal(engine.phase("late"), "Failed");
});
