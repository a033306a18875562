// Random lives of pods over a faulty runtime: whatever happened, in the end all that is wanted runs, once, and nothing
// else is left. NODELET_SEED repeats a run, NODELET_LIVES makes it longer; `npm run soak` has 100 lives.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { type Behaviour, exitsAfter, type FaultEffect, ignoresTerm, runsForever } from "../beside/hollow/index.ts";
import type { CriOperation } from "../connections/cri/index.ts";
import type { IdentifiedPod } from "../ground/model/index.ts";

const firstSeed = Number(process.env["NODELET_SEED"] ?? 1);
const lives = Number(process.env["NODELET_LIVES"] ?? 8);

for (let seed = firstSeed; seed < firstSeed + lives; seed++) {
  test(`a random life (NODELET_SEED=${seed} NODELET_LIVES=1)`, () => live(seed));
}

async function live(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  await using node = await TestEngine.start({ runtime: { events: random() < 0.8 ? "offered" : "absent" } });
  const wanted = new Map<string, IdentifiedPod>();
  let version = 0;

  const behaviours: readonly Behaviour[] = [
    runsForever(),
    runsForever(3_000),
    ignoresTerm(),
    exitsAfter(2_000, 1),
    exitsAfter(20_000, 0),
  ];
  const create = async (): Promise<void> => {
    const name = `pod-${Math.floor(random() * 6)}`;
    const old = wanted.get(name);
    const uid = `${name}-${++version}`;
    const container = (role: string) => {
      node.runtime.behave(`${role}-${uid}`, pick(behaviours), runsForever());
      return { name: `${role}-${uid}`, image: "busybox:1" };
    };
    const init = random() < 0.3 ? [container("init")] : [];
    for (const { name: initName } of init)
      node.runtime.behave(initName, exitsAfter(random() * 3_000, random() < 0.3 ? 1 : 0), exitsAfter(100, 0));
    const sidecars = random() < 0.3 ? [{ ...container("side"), restartPolicy: "Always" as const }] : [];
    const spec = {
      terminationGracePeriodSeconds: pick([1, 5, 30]),
      initContainers: [...init, ...sidecars],
      containers: Array.from({ length: 1 + Math.floor(random() * 2) }, (_, index) => container(`main${index}`)),
    };
    const pod = enginePod(name, spec, { uid });
    wanted.set(name, pod);
    if (old !== undefined) node.forget(old.metadata.uid);
    await node.want(pod);
  };
  const drop = async (): Promise<void> => {
    const pod = pick([...wanted.values()]);
    if (pod === undefined) return;
    wanted.delete(pod.metadata.name);
    await node.drop(pod.metadata.uid);
    // Put back at once: the same uid again.
    if (random() < 0.3) {
      wanted.set(pod.metadata.name, pod);
      await node.want(pod);
    }
  };
  const operations: readonly CriOperation[] = [
    "runPodSandbox",
    "createContainer",
    "startContainer",
    "stopContainer",
    "stopPodSandbox",
    "removeContainer",
    "removePodSandbox",
    "listContainers",
    "listPodSandbox",
    "containerStatus",
    "podSandboxStatus",
    "pullImage",
  ];
  const fail = async (): Promise<void> => {
    const effect = pick<FaultEffect>([
      { type: "error", code: "Unknown", message: "made up" },
      { type: "error", code: "Unavailable", message: "made up" },
      { type: "error", code: "DeadlineExceeded", message: "made up" },
      { type: "delay", ms: 3_000 },
      { type: "hang" },
    ]);
    const fault = node.runtime.faults.add({
      operation: pick(operations),
      at: pick(["before", "after", "during"]),
      times: 1 + Math.floor(random() * 4),
      effect,
    });
    await node.advance(random() * 10_000);
    if (effect.type === "hang") fault.remove();
  };
  const crash = async (): Promise<void> => {
    const running = node.runtime.containers().filter(({ life }) => life.step === "running");
    const victim = pick(running);
    if (victim !== undefined) node.runtime.exit(victim.id, pick([0, 1, 137]));
  };
  const loseSandbox = async (): Promise<void> => {
    const sandbox = pick(node.runtime.sandboxes().filter(({ state }) => state === "ready"));
    if (sandbox !== undefined) node.runtime.killSandbox(sandbox.id);
  };
  const restartRuntime = async (): Promise<void> => {
    node.runtime.kill();
    await node.advance(random() * 5_000);
    node.runtime.start(pick(["everything", "everything", "records", "nothing"]));
    node.runtime.imageStore.preload("busybox:1");
  };
  const steps = [create, create, create, drop, fail, fail, crash, loseSandbox, restartRuntime, () => node.restart()];

  for (let step = 0; step < 40; step++) {
    await pick(steps)();
    await node.advance(pick([0, 50, 500, 5_000]));
    assertNoTwins(node);
  }
  node.runtime.faults.clear();
  const runsAll = (): boolean => [...wanted.values()].every(({ metadata }) => node.phase(metadata.uid) === "Running");
  await node.until(`all of ${[...wanted.keys()]} run`, runsAll, 1_200_000, 5_000);
  await node.advance(900_000);
  assertNoTwins(node);
  const expected = [...wanted.values()].flatMap(({ metadata, spec }) => {
    const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
    return [...sidecars, ...spec.containers].map(({ name }) => `${metadata.name}/${name}`);
  });
  assert.deepEqual(node.running(), expected.sort());
  await node.drop(...[...wanted.values()].map(({ metadata }) => metadata.uid));
  await node.until("nothing is left", () => node.runtime.sandboxes().length === 0, 300_000, 1_000);
  await node.until("every worker has ended", () => [...node.engine.workers.uids()].length === 0, 300_000, 100);
  await node.cleanOrphanedDirectories();
  assert.deepEqual(node.runtime.containers(), []);
  assert.deepEqual(await readdir(join(node.rootDir, "pods")).catch(() => []), []);
  assert.deepEqual(node.engine.views.pods(), []);
}

/** Of one pod name only one version runs, of one container only one instance. */
function assertNoTwins(node: TestEngine): void {
  const running = node.running();
  assert.deepEqual(running, [...new Set(running)].sort());
  const uids = new Map<string, string>();
  for (const { sandbox, life } of node.runtime.containers()) {
    if (life.step !== "running") continue;
    const { name = "", uid = "" } = sandbox.config.metadata ?? {};
    assert.equal(uids.get(name) ?? uid, uid, `two versions of ${name} run at once`);
    uids.set(name, uid);
  }
}
