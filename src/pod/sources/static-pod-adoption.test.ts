import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { manifest, SourceEars, temporaryDirectory } from "../../../test/support/pod-source.ts";
import { withoutDescriptors } from "../../../test/support/without-descriptors.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { containerHash, type IdentifiedPod } from "../../ground/model/index.ts";
import { FileSource } from "./file-source.ts";
import { type StartedStaticPod, StaticPodAdoption } from "./static-pod-adoption.ts";

const pod: IdentifiedPod = {
  metadata: { name: "web-n", namespace: "default", uid: "own", labels: { app: "web" } },
  spec: { initContainers: [{ name: "init", image: "i:1" }], containers: [{ name: "c", image: "i:1" }] },
};
const started: StartedStaticPod = {
  name: "web-n",
  namespace: "default",
  uid: "theirs",
  startedAtMs: 1000,
  labels: { app: "web", "io.kubernetes.pod.name": "web-n" },
  containerHashes: new Map([["c", containerHash({ name: "c", image: "i:1" })]]),
};

const cases: readonly (readonly [
  what: string,
  StartedStaticPod,
  IdentifiedPod,
  unchangedSinceMs: number,
  uid: string,
])[] = [
  ["started from this file", started, pod, 999, "theirs"],
  ["started before the file was written", started, pod, 1001, "own"],
  ["another pod", { ...started, name: "other-n" }, pod, 999, "own"],
  ["another namespace", { ...started, namespace: "kube-system" }, pod, 999, "own"],
  ["another label", { ...started, labels: { app: "db" } }, pod, 999, "own"],
  ["another image", { ...started, containerHashes: new Map([["c", "1"]]) }, pod, 999, "own"],
  ["a container that never started", { ...started, containerHashes: new Map() }, pod, 999, "own"],
  [
    "another init container",
    { ...started, containerHashes: new Map([...started.containerHashes, ["init", "1"]]) },
    pod,
    999,
    "own",
  ],
];
for (const [what, found, wanted, unchangedSinceMs, uid] of cases) {
  test(`${what}: UID ${uid}`, async () => {
    await using directory = await temporaryDirectory();
    const adoption = new StaticPodAdoption([found], join(directory.path, "state", "uids.json"), silentLogger);
    await adoption.restore();
    const { metadata } = await adoption.adopt(wanted, unchangedSinceMs);
    assert.equal(metadata.uid, uid);
    if (uid === "theirs") assert.equal(metadata.annotations?.["kubernetes.io/config.hash"], uid);
  });
}

test("our own started pod is not exchanged for another one of its name", async () => {
  await using directory = await temporaryDirectory();
  const ours = { ...started, uid: "own", startedAtMs: 500 };
  const adoption = new StaticPodAdoption([started, ours], join(directory.path, "uids.json"), silentLogger);
  assert.equal((await adoption.adopt(pod, 1)).metadata.uid, "own");
});

test("an adopted UID outlives the sandbox it came from, and a state file that is damaged harms nothing", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "state", "uids.json");
  await new StaticPodAdoption([started], path, silentLogger).adopt(pod, 1);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const later = new StaticPodAdoption([], path, silentLogger);
  await later.restore();
  assert.equal((await later.adopt(pod, Number.POSITIVE_INFINITY)).metadata.uid, "theirs");
  for (const damage of ["", "{", "[1]", '{"own":1}', "null"]) {
    writeFileSync(path, damage);
    const damaged = new StaticPodAdoption([], path, silentLogger);
    await damaged.restore();
    assert.equal((await damaged.adopt(pod, 1)).metadata.uid, "own", damage);
  }
});

test("a UID that can't be read for want of descriptors is no reason to give the pod another", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "uids.json");
  await new StaticPodAdoption([started], path, silentLogger).adopt(pod, 1);
  const later = new StaticPodAdoption([], path, silentLogger);
  {
    using _ = withoutDescriptors();
    await assert.rejects(later.restore(), /EMFILE/);
  }
  await later.restore();
  assert.equal((await later.adopt(pod, Number.POSITIVE_INFINITY)).metadata.uid, "theirs");
});

test("a manifest is adopted as it is found, and an edit makes it a new pod", async () => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "web.yaml");
  writeFileSync(file, manifest("web"));
  const theirs: StartedStaticPod = {
    ...started,
    labels: {},
    startedAtMs: Date.now() + 60_000,
    containerHashes: new Map([["main", containerHash({ name: "main", image: "busybox:1" })]]),
  };
  const path = join(directory.path, ".state", "uids.json");
  const ears = new SourceEars();
  const source = new FileSource(
    {
      path: file,
      checkFrequencyMs: 3_600_000,
      lastGoodDirectory: join(directory.path, ".saved"),
      nodeName: "n",
      references: { prevent: true, allow: [] },
      adoption: new StaticPodAdoption([theirs], path, silentLogger),
    },
    ears.ports,
  );
  const scope = new TaskScope();
  scope.spawn("file source", (signal) => source.run(signal));
  const uid = (): string | undefined => ears.deliveries.at(-1)?.[0]?.metadata.uid;
  await ears.until("the pod is adopted", () => uid() === "theirs");
  writeFileSync(file, manifest("web", "busybox:2"));
  await ears.until("the edited pod is another one", () => /^[0-9a-f]{32}$/.test(uid() ?? ""));
  await scope.stop();
});
