import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import {
  type PodSpec,
  type TokenRequestSpec,
  uidOf,
  type V1beta1ClusterTrustBundle,
} from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const hour = 3_600_000;

/** An API server that hands out numbered tokens. */
function tokenServer(clock: FakeClock) {
  const asked: { account: string; spec: TokenRequestSpec }[] = [];
  const server = {
    asked,
    failure: undefined as Error | undefined,
    request: async (_namespace: string, account: string, spec: TokenRequestSpec) => {
      asked.push({ account, spec });
      if (server.failure !== undefined) throw server.failure;
      const expirationTimestamp = new Date(clock.now() + (spec.expirationSeconds ?? 0) * 1000).toISOString();
      return { spec, status: { token: `token-${asked.length}`, expirationTimestamp } };
    },
  };
  return server;
}

const volume = (audience?: string) => ({
  name: "v",
  projected: { sources: [{ serviceAccountToken: { path: "token", ...(audience !== undefined && { audience }) } }] },
});

test("a token: asked for this pod, renewed at 80 % of its life, long before the old one ends", needsRoot, async () => {
  const clock = new FakeClock();
  const server = tokenServer(clock);
  await using node = await VolumeNode.create({ clock, requestToken: server.request });
  const pod = podWithVolumes([volume("vault")], { serviceAccountName: "builder" });
  await node.volumes.mount(pod, never);
  const file = join(node.volumePath(uidOf(pod), "kubernetes.io/projected", "v"), "token");
  assert.equal(await readFile(file, "utf8"), "token-1");
  const { name, uid } = pod.metadata;
  assert.deepEqual(server.asked[0], {
    account: "builder",
    spec: {
      audiences: ["vault"],
      expirationSeconds: 3600,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
    },
  });
  await clock.advance(0.8 * hour - 10_001);
  await settle(20);
  assert.equal(server.asked.length, 1);
  await clock.advance(10_001);
  await until("the new token is there", async () => (await readFile(file, "utf8")) === "token-2");
});

test(
  "renewing fails: the old file stays, an event tells once it has expired, and it is tried again",
  needsRoot,
  async () => {
    const clock = new FakeClock();
    const server = tokenServer(clock);
    await using node = await VolumeNode.create({ clock, requestToken: server.request });
    const pod = podWithVolumes([volume()]);
    await node.volumes.mount(pod, never);
    const file = join(node.volumePath(uidOf(pod), "kubernetes.io/projected", "v"), "token");
    server.failure = new Error("connection refused");
    await until("the event is there", async () => {
      await clock.advance(60_000);
      return node.events.length > 0;
    });
    assert.ok(clock.monotonic() >= hour, "not while the old one is good");
    // An expired token may be forgotten before the next try, which then has nothing to call expired.
    const message = /(expired and refresh failed|failed to fetch token): connection refused/;
    assert.match(node.events[0]?.message ?? "", message);
    assert.equal(await readFile(file, "utf8"), "token-1");
    assert.ok(server.asked.length > 2, "asked again and again from 80 % on");
    server.failure = undefined;
    await clock.advance(122_000);
    await until("a new token is there", async () => (await readFile(file, "utf8")) !== "token-1");
  },
);

for (const { name, spec, mode, uid, gid } of [
  { name: "nothing said", spec: {}, mode: "644", uid: 0, gid: 0 },
  {
    name: "one user for all containers",
    spec: { securityContext: { runAsUser: 1234 } },
    mode: "600",
    uid: 1234,
    gid: 0,
  },
  { name: "a group", spec: { securityContext: { fsGroup: 99 } }, mode: "640", uid: 0, gid: 99 },
  {
    name: "a user and a group",
    spec: { securityContext: { runAsUser: 1234, fsGroup: 99 } },
    mode: "640",
    uid: 1234,
    gid: 99,
  },
  {
    name: "containers with different users",
    spec: {
      securityContext: { runAsUser: 1234 },
      initContainers: [{ name: "i", image: "x", securityContext: { runAsUser: 5 } }],
    },
    mode: "644",
    uid: 0,
    gid: 0,
  },
] as const) {
  test(`who may read a token: ${name}`, needsRoot, async () => {
    const clock = new FakeClock();
    await using node = await VolumeNode.create({ clock, requestToken: tokenServer(clock).request });
    const pod = podWithVolumes([volume()], spec as Partial<PodSpec>);
    await node.volumes.mount(pod, never);
    const found = await stat(join(node.volumePath(uidOf(pod), "kubernetes.io/projected", "v"), "token"));
    assert.deepEqual([(found.mode & 0o7777).toString(8), found.uid, found.gid], [mode, uid, gid]);
  });
}

test("trust bundles: written, and followed when they change", needsRoot, async () => {
  const listeners: (() => void)[] = [];
  let bundles: V1beta1ClusterTrustBundle[] = [];
  const trustBundles = { list: async () => bundles, onChange: (listener: () => void) => void listeners.push(listener) };
  await using node = await VolumeNode.create({ trustBundles });
  const source = { clusterTrustBundle: { name: "b", path: "ca.pem", optional: true } };
  const pod = podWithVolumes([{ name: "v", projected: { sources: [source] } }]);
  await node.volumes.mount(pod, never);
  const file = join(node.volumePath(uidOf(pod), "kubernetes.io/projected", "v"), "ca.pem");
  assert.equal(await readFile(file, "utf8"), "");
  bundles = [{ metadata: { name: "b" }, spec: { trustBundle: "no certificate in here" } }];
  for (const tell of listeners) tell();
  await settle(20);
  assert.equal(await readFile(file, "utf8"), "");
});

for (const strategy of ["Cache", "Get"] as const) {
  test(`strategy ${strategy}: a change reaches the files with the next sync of the volume`, needsRoot, async () => {
    const clock = new FakeClock();
    await using node = await VolumeNode.create({ clock, strategy });
    node.objects.configMap("m", { a: "1" });
    const pod = podWithVolumes([{ name: "v", configMap: { name: "m" } }]);
    await node.volumes.mount(pod, never);
    const file = join(node.volumePath(uidOf(pod), "kubernetes.io/configmap", "v"), "a");
    node.objects.configMap("m", { a: "2" });
    await clock.advance(59_999);
    assert.equal(await readFile(file, "utf8"), "1");
    await clock.advance(30_001);
    await until("the change is there", async () => {
      await clock.advance(0);
      return (await readFile(file, "utf8")) === "2";
    });
    assert.equal(node.objects.watches, 0);
  });
}

test("strategy Watch: the delay from a change to the files is measured", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { a: "1" });
  const pods = [1, 2, 3].map(() => podWithVolumes([{ name: "v", configMap: { name: "m" } }]));
  await Promise.all(pods.map((pod) => node.volumes.mount(pod, never)));
  assert.deepEqual(node.contentDelaysMs, []);
  node.objects.configMap("m", { a: "2" });
  await until("all pods have it", () => node.contentDelaysMs.length === 3);
  for (const delayMs of node.contentDelaysMs) assert.ok(delayMs >= 0 && delayMs < 20_000);
});
