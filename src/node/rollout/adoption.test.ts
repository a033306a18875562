import assert from "node:assert/strict";
import { test } from "node:test";
import { fileHeader } from "../../../test/support/load-config.ts";
import { RolloutWorld } from "../../../test/support/rollout-world.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";

const minute = 60_000;
const config = (pods: number): string => `${fileHeader}maxPods: ${pods}\n`;

/** A note as the kubelet v1.23 writes it. */
function note(uid: string): string {
  return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: SerializedNodeConfigSource
source:
  configMap:
    kubeletConfigKey: kubelet
    name: cfg
    namespace: kube-system
    resourceVersion: "7"
    uid: ${uid}
`;
}

interface Left {
  readonly assigned?: string;
  readonly good?: string;
  /** By uid. */
  readonly checkpoints?: Readonly<Record<string, string>>;
}

/** A node whose files want 100 pods, with what another kubelet left on its disk. */
async function startedWith({ assigned = "", good = "", checkpoints = {} }: Left): Promise<RolloutWorld> {
  const world = new RolloutWorld(seededRandom(1));
  const { files } = world.disk;
  files.set("/store/store/meta/assigned", assigned);
  files.set("/store/store/meta/last-known-good", good);
  for (const [uid, text] of Object.entries(checkpoints)) files.set(`/store/store/checkpoints/${uid}/7/kubelet`, text);
  await world.start();
  return world;
}

const both = { assigned: note("new"), good: note("old") };
const old = { old: config(60) };

for (const [name, left, pods] of [
  ["what was assigned", { ...both, checkpoints: { ...old, new: config(50) } }, 50],
  ["what was known to be good, where the assigned one is lost", { ...both, checkpoints: old }, 60],
  ["what was known to be good, where the other is invalid", { ...both, checkpoints: { ...old, new: config(-1) } }, 60],
  ["the files, where nothing was assigned", { good: note("old"), checkpoints: old }, 100],
  ["the files, where both are lost", both, 100],
  ["the files, where the note is torn", { assigned: note("new").slice(0, 90), checkpoints: { new: config(50) } }, 100],
  [
    "the files, where a note leads elsewhere",
    { assigned: note("../../x"), checkpoints: { "../../x": config(50) } },
    100,
  ],
] as const satisfies readonly (readonly [string, Left, number])[]) {
  test(`after another kubelet the agent runs with ${name}`, async () => {
    const world = await startedWith(left);
    assert.equal(world.config?.kubelet.maxPods, pods);
    const { report } = world.keeper;
    assert.equal(report?.active.source.from, pods === 100 ? "files" : "configMap");
  });
}

test("what was assigned is tried, and goes back to what was known to be good; then our own notes count", async () => {
  const world = await startedWith({ ...both, checkpoints: { ...old, new: `${fileHeader}port: 666\n` } });
  await world.pass(2 * minute);
  assert.equal(world.config?.kubelet.maxPods, 60);
  assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
  assert.match(JSON.stringify(world.keeper.state.history), /the kubelet before this one had noted it so/);
  await world.keeper.unassign();
  await world.kill();
  await world.start();
  assert.equal(world.config?.kubelet.maxPods, 100);
});
