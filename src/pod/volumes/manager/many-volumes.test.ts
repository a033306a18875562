// A pod may have as many volumes and mounts as fit into the API: tens of thousands. What they cost is the pod's own
// affair; nobody else waits for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { type IdentifiedPod, uidOf, type Volume } from "../../../ground/model/index.ts";
import type { VolumeKind } from "../kinds/kind.ts";
import { nestedMountPoints } from "../kinds/nested-mount-points.ts";

const never = new AbortController().signal;
const many = 5_000;

/** Each volume of it takes a moment, and says how many others do meanwhile. */
class MomentaryKind implements VolumeKind {
  readonly plugin = "test/momentary";
  atOnce = 0;
  most = 0;
  set = 0;

  matches(source: Parameters<VolumeKind["matches"]>[0]): boolean {
    return source.type === "inline" && source.volume.csi?.driver === "momentary";
  }

  needs(): readonly [] {
    return [];
  }

  async setUp({ directory }: Parameters<VolumeKind["setUp"]>[0]): ReturnType<VolumeKind["setUp"]> {
    this.atOnce++;
    this.most = Math.max(this.most, this.atOnce);
    await new Promise(setImmediate);
    this.atOnce--;
    this.set++;
    return { volume: { type: "filesystem", hostPath: directory, readOnly: false, relabel: false } };
  }

  async tearDown(): Promise<void> {}
}

function momentary(count: number): IdentifiedPod {
  const volumes: Volume[] = Array.from({ length: count }, (_, index) => ({
    name: `v${index}`,
    csi: { driver: "momentary" },
  }));
  return podWithVolumes(volumes);
}

async function costMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test("the volumes of one pod are made a few at a time, and another pod does not wait for them", async () => {
  const kind = new MomentaryKind();
  await using node = await VolumeNode.create({ lateKinds: () => [kind] });
  const [large, small] = [momentary(many), momentary(1)];
  const mounting = node.volumes.mount(large, never);
  await node.volumes.mount(small, never);
  assert.ok(kind.set < many / 10, `${kind.set} volumes of the large pod came first`);
  const took = await costMs(() => mounting);
  assert.equal(node.volumes.of(uidOf(large)).size, many);
  assert.ok(kind.most <= 9, `${kind.most} at once`);
  assert.ok(took < 4_000, `took ${took} ms`);
});

test("a label of a pod with many volumes and annotations changes", async () => {
  const kind = new MomentaryKind();
  await using node = await VolumeNode.create({ lateKinds: () => [kind] });
  const plain = momentary(many);
  const annotated = (label: string): IdentifiedPod => {
    const annotations = Object.fromEntries(Array.from({ length: many }, (_, index) => [`key-${index}`, `${index}`]));
    return { ...plain, metadata: { ...plain.metadata, annotations, labels: { label } } };
  };
  await node.volumes.mount(annotated("a"), never);
  const took = await costMs(() => node.volumes.want(annotated("b")));
  assert.ok(took < 2_000, `took ${took} ms`);
});

test("mount points inside a volume, among tens of thousands of mounts", async () => {
  const mounts = (name: string, count: number, below: string) =>
    Array.from({ length: count }, (_, index) => ({ name, mountPath: `${below}/${index}` }));
  const volumeMounts = [
    ...mounts("own", 20_000, "/a"),
    ...mounts("other", 20_000, "/b"),
    { name: "other", mountPath: "/a/7/deep/er" },
    { name: "other", mountPath: "/a/7//./beside/" },
    { name: "other", mountPath: "/a/8/../9/out" },
    { name: "other", mountPath: "/a/8/..data" },
    { name: "other", mountPath: "/a/7000000/elsewhere" },
    { name: "other", mountPath: `/a/8/${"x/".repeat(400_000)}` },
    { name: "own", mountPath: "/a/7/deep" },
    { name: "own", mountPath: "/part", subPath: "x" },
    { name: "other", mountPath: "/part/of" },
  ];
  const pod = podWithVolumes([{ name: "own", emptyDir: {} }], {
    containers: [{ name: "main", image: "x", volumeMounts }],
  });
  let found: ReadonlySet<string> = new Set();
  const took = await costMs(() => {
    found = nestedMountPoints(pod, "own");
  });
  assert.deepEqual([...found].sort(), ["beside", "deep/er", "er"]);
  assert.ok(took < 2_000, `took ${took} ms`);
});

test("a volume mounted at the root of a container holds all others", () => {
  const volumeMounts = [
    { name: "own", mountPath: "/" },
    { name: "other", mountPath: "/etc/app" },
  ];
  const pod = podWithVolumes([{ name: "own", emptyDir: {} }], {
    containers: [{ name: "main", image: "x", volumeMounts }],
  });
  assert.deepEqual([...nestedMountPoints(pod, "own")], ["etc/app"]);
});
