// What a single pod can do to the agent by what it says and by how it ends, on virtual time.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { enginePod, TestEngine, type TestEngineOptions } from "../../test/support/test-engine.ts";
import { does, exitsAfter, ignoresTerm, runsForever } from "../beside/hollow/index.ts";
import { type IdentifiedPod, type PodStatus, type PodUid, takenOffStatus } from "../ground/model/index.ts";

const container = { name: "main", image: "busybox:1" };

/** A node of a cluster that can have no image but one. */
async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  const node = await TestEngine.start({ source: "api", runtime: { unknownImages: "absent" }, ...options });
  node.runtime.imageStore.publish({ name: "busybox:1" });
  return node;
}

test("a hook that fails with megabytes of output leaves a few kilobytes behind", async () => {
  await using node = await start();
  const stdout = "\0".repeat(8_000_000);
  node.runtime.onExec(() => ({ stdout, stderr: stdout, exitCode: 1 }));
  const lifecycle = { postStart: { exec: { command: ["sh", "-c", "x".repeat(500_000)] } } };
  await node.want(enginePod("web", { containers: [{ ...container, lifecycle }] }));
  await node.until("it has failed twice", () => node.container("web", "main").restartCount >= 2);
  await node.until("the failure shows", () => node.container("web", "main").state?.waiting?.message !== undefined);
  assert.ok(JSON.stringify(node.status("web")).length < 64_000);
  assert.ok(JSON.stringify(node.engine.ledger.read("web" as PodUid)).length < 64_000);
  assert.ok((await stat(join(node.rootDir, "pods", "web", "nodelet.json"))).size < 64_000);
  await node.drop("web");
  await node.until("it is gone", () => node.runtime.sandboxes().length === 0);
  assert.ok(JSON.stringify(node.events).length < 64_000);
});

const neverAgain = { restartPolicy: "Never" } as const;

/** The pod has come to rest: time alone brings a few calls at most. */
async function assertQuiet(node: TestEngine, forMs: number, mostCalls: number): Promise<void> {
  const before = node.calls();
  await node.advance(forMs);
  assert.ok(node.calls() - before <= mostCalls, `${node.calls() - before} calls in ${forMs} ms`);
}

function killSandboxes(node: TestEngine): void {
  for (const { id } of node.runtime.sandboxes()) node.runtime.killSandbox(id);
}

const endless: readonly {
  readonly name: string;
  readonly spec: Parameters<typeof enginePod>[1];
  readonly prepare: (node: TestEngine) => void;
  readonly break: (node: TestEngine) => void;
}[] = [
  {
    name: "its sandbox dies when one container has ended and the other never began",
    spec: { ...neverAgain, containers: [container, { name: "other", image: "absent:1" }] },
    prepare: (node) => node.runtime.behave("main", exitsAfter(10, 0)),
    break: killSandboxes,
  },
  {
    name: "its init container ends well, though something in it was killed for want of memory",
    spec: { ...neverAgain, initContainers: [{ name: "init", image: "busybox:1" }] },
    prepare: (node) => node.runtime.behave("init", runsForever()),
    break: (node) => node.runtime.exit("init", 0, "OOMKilled"),
  },
];

for (const { name, spec, prepare, break: breakIt } of endless) {
  test(`a pod that starts nothing any more costs nothing: ${name}`, async () => {
    await using node = await start();
    prepare(node);
    await node.want(enginePod("job", spec));
    await node.advance(5_000);
    breakIt(node);
    await assertQuiet(node, 1_000, 40);
    await assertQuiet(node, 600_000, 40);
  });
}

test("a pod that runs once and whose sandbox dies while an image is missing gets another, costs no more, and starts", async () => {
  await using node = await start();
  node.runtime.behave("init", exitsAfter(10, 0));
  const initContainers = [{ name: "init", image: "busybox:1" }];
  const containers = [{ name: "main", image: "absent:1" }];
  await node.want(enginePod("job", { ...neverAgain, initContainers, containers }));
  await node.advance(600_000);
  const before = node.calls();
  await node.advance(600_000);
  const asUsual = node.calls() - before;
  killSandboxes(node);
  await node.advance(600_000);
  assert.equal(node.runtime.sandboxes().length, 1);
  await assertQuiet(node, 600_000, asUsual);
  node.runtime.imageStore.publish({ name: "absent:1" });
  await node.until("it runs", () => node.container("job", "main").state?.running !== undefined, 600_000);
});

const waits: readonly { readonly name: string; readonly image: string; readonly reason: RegExp }[] = [
  { name: "crashes", image: "busybox:1", reason: /^CrashLoopBackOff$/ },
  { name: "has no image", image: "absent:1", reason: /^ErrImagePull$/ },
];

for (const { name, image, reason } of waits) {
  test(`a pod with a readiness gate that ${name}: the echo of its status changes nothing`, async () => {
    await using node = await start();
    node.runtime.behave("main", exitsAfter(10, 1));
    const pod = enginePod("web", {
      readinessGates: [{ conditionType: "example.com/gate" }],
      containers: [{ name: "main", image }],
    });
    let statuses = 0;
    // As an API server does: what is patched comes back a moment later, with the rest of the pod unchanged.
    node.engine.statuses.onChange((_, status) => {
      statuses++;
      node.clock.after(10, () => void node.want({ ...structuredClone(pod), status } as IdentifiedPod));
    });
    await node.want(pod);
    await node.until("it waits", () => reason.test(node.container("web", "main").state?.waiting?.reason ?? ""));
    await node.advance(30_000);
    const events = node.events.filter((event) => event.includes("BackOff")).length;
    assert.ok(statuses <= 20, `${statuses} statuses`);
    assert.ok(events <= 20, `${events} events`);
  });
}

test("a changed definition is tried at once, whatever the old one waits for", async () => {
  await using node = await start();
  await node.want(enginePod("web", { containers: [{ name: "main", image: "absent:1" }] }));
  await node.until("it waits", () => node.container("web", "main").state?.waiting?.reason === "ErrImagePull");
  await node.advance(120_000);
  await node.want(enginePod("web", { containers: [container] }));
  const tookMs = await node.until("it runs", () => node.phase("web") === "Running");
  assert.ok(tookMs < 1_000, `${tookMs} ms`);
});

test("a pod that was removed while the agent was away is stopped as its users asked for: hook first", async () => {
  await using node = await start();
  const commands: string[] = [];
  node.runtime.onExec((command) => {
    commands.push(command.join(" "));
    return { exitCode: 0 };
  });
  const lifecycle = { preStop: { exec: { command: ["say", "goodbye"] } } };
  await node.want(enginePod("web", { containers: [{ ...container, lifecycle }] }));
  await node.until("it runs", () => node.phase("web") === "Running");
  node.forget("web");
  await node.restart();
  await node.until("it is gone", () => node.runtime.sandboxes().length === 0);
  assert.deepEqual(commands, ["say goodbye"]);
});

for (const containers of ["main", {}, 7, null, [null], ["main", []]]) {
  test(`a pod whose containers are no list (${JSON.stringify(containers)}) can be deleted`, async () => {
    await using node = await start();
    const pod = enginePod("odd", { initContainers: [{ ...container, name: "init" }] });
    await node.want({ ...pod, spec: { ...pod.spec, containers } as unknown as IdentifiedPod["spec"] });
    await node.advance(60_000);
    await node.drop("odd");
    await node.until("it is gone", () => [...node.engine.workers.uids()].length === 0);
    assert.deepEqual(node.runtime.sandboxes(), []);
  });
}

for (const spoilt of [
  { volumeMounts: "text" },
  { volumeMounts: [null] },
  { ports: 7 },
  { env: {} },
  { resources: "much" },
  { lifecycle: [] },
  { livenessProbe: "alive" },
]) {
  test(`a pod with a container of ${JSON.stringify(spoilt)} can be deleted`, async () => {
    await using node = await start();
    await node.want(enginePod("odd", { containers: [container, { ...container, name: "odd", ...spoilt } as never] }));
    await node.advance(60_000);
    await node.drop("odd");
    await node.until("it is gone", () => [...node.engine.workers.uids()].length === 0);
    assert.deepEqual(node.runtime.sandboxes(), []);
  });
}

test("a resize that is refused is not shown as granted, neither now nor after a restart", async () => {
  await using node = await start({ resizeSettings: { isEnabled: false } });
  const asking = (cpu: string, generation: number): IdentifiedPod =>
    enginePod(
      "web",
      { containers: [{ ...container, resources: { requests: { cpu }, limits: { cpu } } }] },
      { generation },
    );
  await node.want(asking("100m", 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  const shown = () => {
    const { allocatedResources, resources } = node.container("web", "main");
    const pending = node.status("web").conditions?.find(({ type }) => type === "PodResizePending");
    return [allocatedResources?.["cpu"], resources?.limits?.["cpu"], pending?.reason, pending?.observedGeneration];
  };
  assert.deepEqual(shown(), ["100m", "100m", undefined, undefined]);
  await node.want(asking("500m", 2));
  await node.advance(1_000);
  assert.deepEqual(shown(), ["100m", "100m", "Infeasible", 2]);
  assert.equal(node.status("web").observedGeneration, 2);
  await node.restart();
  await node.until("it runs", () => node.phase("web") === "Running");
  assert.deepEqual(shown(), ["100m", "100m", "Infeasible", 2]);
  node.runtime.exit("main", 1);
  await node.until(
    "it has been restarted",
    () => node.running().length === 1 && node.container("web", "main").restartCount === 1,
  );
  const quotas = node.runtime.containers().map(({ config }) => config.linux?.resources?.cpuQuota);
  assert.deepEqual(new Set(quotas), new Set([10_000n]), "what is shown is what it runs with");
  await node.want(asking("100m", 3));
  await node.advance(1_000);
  assert.deepEqual(shown(), ["100m", "100m", undefined, undefined]);
});

for (const { exitCode, told } of [
  { exitCode: 0, told: ["Succeeded", undefined, undefined] },
  { exitCode: 3, told: ["Failed", "Preempting", "room was needed"] },
]) {
  test(`a pod that the node takes off ends as its containers do: exit code ${exitCode}`, async () => {
    await using node = await start();
    node.runtime.behave("main", does([{ do: "sleepForever" }], [{ do: "exit", code: exitCode }]));
    await node.want(enginePod("web"), enginePod("late", { activeDeadlineSeconds: 60 }));
    await node.until("they run", () => node.running().length === 2);
    node.engine.workers.terminate("web" as PodUid, {
      cause: "evicted",
      graceSeconds: 10,
      amendStatus: (status) => ({ ...status, phase: "Failed", reason: "Preempting", message: "room was needed" }),
    });
    await node.until("it has ended", () => node.phase("web") !== "Running");
    await node.advance(5_000);
    const { reason, message } = node.status("web");
    assert.deepEqual([node.phase("web"), reason, message], told);
    await node.until("the other is past its deadline", () => node.phase("late") !== "Running");
    await node.advance(5_000);
    assert.deepEqual([node.phase("late"), node.status("late").reason], ["Failed", "DeadlineExceeded"]);
  });
}

test("a container that ended well with its dead sandbox, and runs in the next one, is shown to run", async () => {
  await using node = await start();
  node.runtime.behave("main", does([{ do: "sleepForever" }], [{ do: "exit", code: 0 }]));
  node.runtime.behave(
    "slow",
    does(
      [{ do: "sleepForever" }],
      [
        { do: "sleep", ms: 2_500 },
        { do: "exit", code: 1 },
      ],
    ),
  );
  const containers = [container, { ...container, name: "slow" }];
  await node.want(enginePod("web", { restartPolicy: "OnFailure", containers, terminationGracePeriodSeconds: 30 }));
  await node.until("both run", () => node.running().length === 2);
  killSandboxes(node);
  await node.advance(60_000);
  assert.deepEqual(node.running(), ["web/main", "web/slow"]);
  for (const name of ["main", "slow"]) assert.ok(node.container("web", name).state?.running !== undefined, name);
});

for (const restartPolicy of ["Always", "Never"]) {
  for (const isKilled of [true, false]) {
    const how = isKilled ? "its container was killed" : "its container still runs";
    test(`an agent that ends while it evicts: ${how}, ${restartPolicy}; the next one ends the pod as evicted`, async () => {
      await using node = await start();
      node.runtime.behave("main", ignoresTerm());
      await node.want(enginePod("web", { restartPolicy }));
      await node.until("it runs", () => node.running().length === 1);
      const decision = { reason: "Evicted", message: "memory ran short", disruption: "memory ran short" } as const;
      const amendStatus = (status: PodStatus) => takenOffStatus(status, decision, node.clock.now());
      node.engine.workers.terminate("web" as PodUid, { cause: "evicted", graceSeconds: 600, amendStatus, decision });
      await node.advance(1_000);
      await node.stop();
      if (isKilled) node.runtime.exit("main", 137);
      await node.restart();
      await node.until("it has ended", () => node.phase("web") === "Failed");
      const { reason, message, conditions } = node.status("web");
      assert.deepEqual([reason, message], ["Evicted", "memory ran short"]);
      assert.ok(conditions?.some(({ type, status }) => type === "DisruptionTarget" && status === "True"));
      assert.equal(node.runtime.containers().length, 1, "nothing was started again");
      await node.restart();
      await node.advance(60_000);
      assert.deepEqual([node.phase("web"), node.running()], ["Failed", []]);
    });
  }
}

test("the time of day may be set back by hours: what waits goes on, grace is not longer", async () => {
  await using node = await start();
  node.runtime.behave("crash", exitsAfter(10, 1));
  node.runtime.behave("stubborn", ignoresTerm());
  await node.want(
    enginePod("web", { containers: [{ name: "crash", image: "busybox:1" }] }),
    enginePod("image", { containers: [{ name: "main", image: "absent:1" }] }),
    enginePod("old", { containers: [{ name: "stubborn", image: "busybox:1" }] }),
  );
  await node.until("one waits", () => node.container("web", "crash").state?.waiting?.reason === "CrashLoopBackOff");
  await node.drop("old");
  await node.advance(1_000);
  node.clock.setBack(5 * 3_600_000);
  const restarts = node.container("web", "crash").restartCount;
  node.runtime.imageStore.publish({ name: "absent:1" });
  await node.until("the grace is over", () => !node.running().includes("old/stubborn"), 60_000, 1_000);
  await node.until("it crashes again", () => node.container("web", "crash").restartCount > restarts, 600_000, 1_000);
  await node.until("the other runs", () => node.phase("image") === "Running", 600_000, 1_000);
});

const seed = Number(process.env["NODELET_SEED"] ?? Math.floor(Math.random() * 1e9));

test(`whatever an agent finds in its memory of a pod, it goes on (NODELET_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  await using node = await start();
  await node.want(enginePod("web"), enginePod("other"));
  await node.until("they run", () => node.running().length === 2);
  const path = join(node.rootDir, "pods", "web", "nodelet.json");
  const good = await readFile(path, "utf8");
  const odd = (depth = 0): unknown =>
    depth > 3
      ? pick([null, 1, "x", true])
      : pick<() => unknown>([
          () => null,
          () => [odd(depth + 1)],
          () => "x",
          () => -1,
          () => ({ name: odd(depth + 1), type: odd(depth + 1), main: odd(depth + 1) }),
          () => ({ conditions: odd(depth + 1), containerStatuses: odd(depth + 1), phase: "Running" }),
        ])();
  for (let round = 0; round < 10; round++) {
    const text = pick<() => string>([
      () => good.slice(0, Math.floor(random() * good.length)),
      () => JSON.stringify({ status: odd(), allocated: odd(), crashBackoff: odd() }),
      () => JSON.stringify(odd()),
    ])();
    await node.restart(); // so that nothing is written after us
    await node.stop();
    await writeFile(path, text);
    await node.restart();
    await node.until("they are known", () => node.phase("web") === "Running" && node.phase("other") === "Running");
    assert.deepEqual(node.running(), ["other/main", "web/main"], text);
  }
});

type Answers = NonNullable<Parameters<typeof TestEngine.start>[0]>["answers"];
type SpoilSandbox = (node: TestEngine, id: string) => void;

/** Sandboxes that never serve, by what is wrong with each; all are well after `bad` of them, lest a test never end. */
const uselessSandboxes: readonly {
  readonly name: string;
  readonly isAddressless: boolean;
  readonly spoil: SpoilSandbox;
}[] = [
  { name: "has no address", isAddressless: true, spoil: () => {} },
  { name: "dies at once", isAddressless: false, spoil: (node, id) => node.runtime.killSandbox(id) },
];

for (const { name, isAddressless, spoil } of uselessSandboxes) {
  test(`a pod whose every sandbox ${name} gets new ones ever more slowly, and a changed pod its own at once`, async () => {
    const bad = 100;
    const made: { readonly id: string; readonly at: number }[] = [];
    const answers: Answers = (runtime) => ({
      ...runtime,
      async runPodSandbox(...words) {
        const answer = await runtime.runPodSandbox(...words);
        made.push({ id: answer.podSandboxId, at: node.clock.monotonic() });
        if (made.length < bad) spoil(node, answer.podSandboxId);
        return answer;
      },
      async podSandboxStatus(...words) {
        const answer = await runtime.podSandboxStatus(...words);
        if (isAddressless && made.length < bad && answer.status?.network) answer.status.network.ip = "";
        return answer;
      },
    });
    await using node = await TestEngine.start({ source: "api", answers });
    await node.want(enginePod("web", { terminationGracePeriodSeconds: 0 }));
    await node.advance(90_000);
    const gaps = made.slice(1).map(({ at }, index) => Math.round((at - (made[index]?.at ?? 0)) / 1_000));
    assert.deepEqual(gaps, [1, 2, 4, 8, 16, 30]);
    await node.want(enginePod("web", { terminationGracePeriodSeconds: 1 }));
    assert.equal(made.length, gaps.length + 2, "what was in the way may be gone with the change");
  });
}
