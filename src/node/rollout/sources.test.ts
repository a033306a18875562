import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../../../test/support/agent.ts";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { TornDisk } from "../../../test/support/rollout-world.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import { systemIo } from "../../ground/config/index.ts";
import type { ConfigMap, Node } from "../../ground/model/index.ts";
import { AssignedConfig, configMapRefOf } from "./assigned-config.ts";
import { ConfigMapFiles } from "./config-map-files.ts";
import { guardedIo, refuseShared } from "./guarded-io.ts";
import { emptyState } from "./state.ts";
import { RolloutStore } from "./store.ts";
import type { ConfigVersion } from "./version.ts";
import { readVersion, versionOf } from "./version.ts";
import { WatchedFiles } from "./watched-files.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-rollout-"));
});
after(() => rm(directory, { recursive: true, force: true }));

test("notes are kept in no directory that others can write to, or that belongs to pods", async () => {
  const pods = join(directory, "refused", "pods");
  const guard = { uid: process.getuid?.() ?? 0, podsDirs: [pods] };
  const notes = join(pods, "notes");
  await mkdir(notes, { recursive: true });
  await refuseShared(notes, { ...guard, podsDirs: [] });
  await assert.rejects(refuseShared(notes, guard), /lies in .* which belongs to pods/);
  await chmod(notes, 0o777);
  await assert.rejects(refuseShared(notes, { ...guard, podsDirs: [] }), /can be written to by others/);
});

test("a file that others can write to, or that belongs to pods, is not read while the agent runs", async () => {
  const pods = join(directory, "pods");
  const io = guardedIo(systemIo(directory), { uid: process.getuid?.() ?? 0, podsDirs: [pods] });
  const file = join(directory, "own.yaml");
  await writeFile(file, "kind: A", { mode: 0o644 });
  assert.equal(Buffer.from(await io.readFile(file)).toString(), "kind: A");
  await chmod(file, 0o664);
  await assert.rejects(io.readFile(file), /can be written to by others/);
  await chmod(file, 0o600);
  await mkdir(pods);
  await writeFile(join(pods, "x.yaml"), "");
  await symlink(join(pods, "x.yaml"), join(directory, "link.yaml"));
  await assert.rejects(io.readFile(join(directory, "link.yaml")), /belongs to pods/);
  await symlink(directory, join(directory, "root"));
  const linked = guardedIo(systemIo(directory), { uid: 0, podsDirs: [join(directory, "root", "pods")] });
  await assert.rejects(linked.readFile(join(directory, "link.yaml")), /belongs to pods/);
  const open = join(directory, "open");
  await mkdir(open);
  await chmod(open, 0o777);
  await writeFile(join(open, "x.yaml"), "");
  await assert.rejects(io.readFile(join(open, "x.yaml")), /can be written to by others/);
  spawnSync("mkfifo", [join(directory, "pipe")]);
  await assert.rejects(io.readFile(join(directory, "pipe")), /no file/);
  await writeFile(join(directory, "long.yaml"), Buffer.alloc(2 ** 20 + 1), { mode: 0o600 });
  await assert.rejects(io.readFile(join(directory, "long.yaml")), /longer than/);
});

test("files are proposed when they change, once, and not half written", async () => {
  const config = join(directory, "watched.yaml");
  const text = (pods: number) =>
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: ${pods}\n`;
  await writeFile(config, text(1));
  const found: unknown[] = [];
  const argv = [`--config=${config}`, "--kubeconfig=/k"];
  const io = systemIo(directory);
  const files = new WatchedFiles(
    { configFile: config, configDir: "" },
    {
      read: () => readVersion(argv, { source: { from: "files" }, words: [] }, io),
      propose: async ({ loaded }) => {
        found.push(loaded.kind === "config" ? loaded.config.kubelet.maxPods : loaded.kind);
      },
      clock: systemClock,
      log: silentLogger,
    },
  );
  await using scope = new TaskScope();
  scope.spawn("files", (signal) => files.run(signal));
  await eventually(async () => found.length === 1, "the first look", 20_000);
  // Shorter than the time a file has to stay the same.
  await writeFile(config, "apiVersion: kubelet.config");
  await writeFile(config, text(2));
  await eventually(async () => found.length === 2, "the change", 20_000);
  assert.deepEqual(found, [1, 2]);
});

test("files that can't be read at all leave the agent with what it has, and are looked at again", async () => {
  const config = join(directory, "unreadable.yaml");
  await writeFile(config, "");
  let reads = 0;
  const files = new WatchedFiles(
    { configFile: config, configDir: "" },
    {
      read: async () => {
        reads++;
        throw new Error("no way");
      },
      propose: () => assert.fail("nothing was read"),
      clock: systemClock,
      log: silentLogger,
    },
  );
  await using scope = new TaskScope();
  scope.spawn("files", (signal) => files.run(signal));
  await eventually(async () => reads === 1, "the first look", 20_000);
  await writeFile(config, "kind: A");
  await eventually(async () => reads > 1, "another look", 20_000);
  assert.equal(scope.signal.aborted, false, String(scope.signal.reason));
});

test("a directory of drop-ins that another one takes the place of is watched, and busy neighbours cost little", async () => {
  const place = join(directory, "swapped");
  const dropIns = join(place, "conf.d");
  const text = (pods: number) =>
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: ${pods}\n`;
  const make = async (path: string, pods: number): Promise<void> => {
    await mkdir(path, { recursive: true });
    await writeFile(join(path, "10-pods.conf"), text(pods));
  };
  await make(dropIns, 1);
  const argv = [`--config-dir=${dropIns}`, "--kubeconfig=/k"];
  const io = systemIo(directory);
  let reads = 0;
  const found: unknown[] = [];
  const files = new WatchedFiles(
    { configFile: "", configDir: dropIns },
    {
      read: () => {
        reads++;
        return readVersion(argv, { source: { from: "files" }, words: [] }, io);
      },
      propose: async ({ loaded }) => {
        found.push(loaded.kind === "config" ? loaded.config.kubelet.maxPods : loaded.kind);
      },
      clock: systemClock,
      log: silentLogger,
    },
  );
  await using scope = new TaskScope();
  scope.spawn("files", (signal) => files.run(signal));
  await eventually(async () => found.length === 1, "the first look", 20_000);
  await make(join(place, "next.d"), 2);
  await rename(dropIns, join(place, "old.d"));
  await rename(join(place, "next.d"), dropIns);
  await eventually(async () => found.length === 2, "the other directory", 20_000);
  await writeFile(join(dropIns, "10-pods.conf"), text(3));
  await eventually(async () => found.length === 3, "a change in it", 20_000);
  assert.deepEqual(found, [1, 2, 3]);
  reads = 0;
  const since = systemClock.monotonic();
  for (let write = 0; write < 50; write++) {
    await writeFile(join(place, "neighbour"), String(write));
    await systemClock.sleep(20, scope.signal);
  }
  // Two a second, however long a busy machine takes for this.
  const seconds = (systemClock.monotonic() - since) / 1_000;
  assert.ok(reads <= 2 + 2 * seconds, `${reads} reads in ${seconds} s`);
});

test("the state before a torn write is whole, whichever file it was", async () => {
  const disk = new TornDisk(() => 0.5);
  for (let saves = 1; saves < 6; saves++) {
    disk.files.clear();
    const store = new RolloutStore("/store", disk);
    for (let save = 1; save <= saves; save++)
      await store.save({ ...emptyState, kept: { version: `${save}`, insteadOf: "" } });
    const newest = saves % 2 === 1 ? "/store/state-a.json" : "/store/state-b.json";
    const text = disk.files.get(newest) ?? "";
    for (const torn of ["", text.slice(0, 20), text.slice(0, -3), text.replace('\\"', "'"), "null", "{}"]) {
      disk.files.set(newest, torn);
      const { kept } = await new RolloutStore("/store", disk).load();
      assert.equal(kept?.version, saves === 1 ? undefined : `${saves - 1}`);
    }
  }
  const version = versionOf({
    source: { from: "files" },
    words: [],
    snapshot: { files: {}, directories: {}, kinds: {} },
  });
  const store = new RolloutStore("/store", disk);
  await store.saveVersion(version);
  assert.deepEqual(await store.version(version.id), version);
  disk.files.set(`/store/versions/${version.id}.json`, JSON.stringify({ ...version, words: ["--port=1"] }));
  assert.equal(await store.version(version.id), undefined, "it is not what its name says");
});

class ConfigMapWorld {
  readonly clock = new FakeClock();
  readonly disk = new TornDisk(() => 0.5);
  readonly proposals: string[] = [];
  node: Node | undefined = { metadata: { name: "n" } };
  map: ConfigMap | Error = new Error("404");
  tell: () => void = () => {};
  readonly assigned: AssignedConfig;
  versions: ConfigVersion[] = [];

  constructor(flag = "") {
    this.assigned = new AssignedConfig(configMapRefOf(flag), {
      api: {
        node: () => this.node,
        onNode: (listener) => {
          this.tell = listener;
          return () => {};
        },
        get: async () => {
          if (this.map instanceof Error) throw this.map;
          return this.map;
        },
        watch: (ref) => {
          this.proposals.push(`watch ${ref.namespace}/${ref.name}`);
          return { [Symbol.dispose]: () => this.proposals.push("unwatch") };
        },
      },
      keeper: {
        proposeAssigned: async (version, by) => {
          this.versions.push(version);
          const [path = ""] = Object.keys(version.snapshot.files);
          this.proposals.push(`${by} ${path}`);
        },
        unassign: async () => void this.proposals.push("none"),
        syncFailed: (problem) => this.proposals.push(problem),
        report: undefined,
      },
      disk: this.disk,
      directory: "/dyn",
      clock: this.clock,
      log: silentLogger,
      random: () => 0,
    });
  }

  async told(): Promise<readonly string[]> {
    this.tell();
    // Whoever tells all the time is not followed step by step.
    await this.clock.advance(1_000);
    await settle();
    return this.proposals.splice(0);
  }
}

test("the config map that the Node names: none, one, a broken one, a missing one, none again", async () => {
  const world = new ConfigMapWorld();
  await using scope = new TaskScope();
  scope.spawn("assigned", (signal) => world.assigned.run(signal));
  assert.deepEqual(await world.told(), ["none", "none"]);
  const configMap = { namespace: "kube-system", name: "cfg", kubeletConfigKey: "kubelet" };
  world.node = { spec: { configSource: { configMap } } };
  assert.deepEqual(await world.told(), ["watch kube-system/cfg", "failed to sync: failed to download config: 404"]);
  world.map = { metadata: { uid: "u-1", resourceVersion: "7" }, data: { kubelet: "kind: A\n", other: "secret" } };
  assert.deepEqual(await world.told(), ["node /dyn/store/checkpoints/u-1/7/kubelet"]);
  assert.deepEqual([...world.disk.files.keys()], ["/dyn/store/checkpoints/u-1/7/kubelet"]);
  assert.deepEqual(world.versions[0]?.words, ["--config=/dyn/store/checkpoints/u-1/7/kubelet", "--config-dir="]);
  world.map = { metadata: { uid: "u-1", resourceVersion: "8" }, data: {} };
  assert.deepEqual(await world.told(), ['failed to sync: the config map has no key "kubelet"']);
  world.map = { metadata: { uid: "../../etc", resourceVersion: "8" }, data: { kubelet: "" } };
  assert.deepEqual(await world.told(), ["failed to sync: the config map has no proper uid and resourceVersion"]);
  world.node = { spec: { configSource: {} } };
  assert.match((await world.told()).join(), /unwatch,failed to sync: invalid NodeConfigSource/);
  world.node = {};
  assert.deepEqual(await world.told(), ["none"]);
});

test("a config map that changes all the time is read once a second", async () => {
  const world = new ConfigMapWorld("ns/cfg");
  await using scope = new TaskScope();
  scope.spawn("assigned", (signal) => world.assigned.run(signal));
  for (let count = 0; count < 100; count++) {
    world.map = { metadata: { uid: "u", resourceVersion: `${count}` }, data: { kubelet: `${count}` } };
    world.tell();
    await world.clock.advance(100);
    await settle();
  }
  await world.clock.advance(1_000);
  await settle();
  const read = world.proposals.filter((proposal) => proposal.startsWith("flag "));
  assert.ok(read.length <= 12, `read ${read.length} times`);
  assert.match(read.at(-1) ?? "", /\/99\/kubelet$/);
});

test("files of config maps that nothing names any more are removed", async () => {
  const disk = new TornDisk(() => 0.5);
  const mapFiles = new ConfigMapFiles("/dyn", disk);
  const source = { namespace: "n", name: "m", key: "kubelet", uid: "u", resourceVersion: "1" };
  for (const [uid, resourceVersion] of [
    ["u", "1"],
    ["u", "2"],
    ["old", "1"],
  ] as const) {
    await mapFiles.save({ ...source, uid, resourceVersion }, "kind: A\n");
  }
  await mapFiles.keepOnly([{ ...source, resourceVersion: "2" }]);
  assert.deepEqual([...disk.files.keys()], ["/dyn/store/checkpoints/u/2/kubelet"]);
});

test("the config map of the flag is read again after a minute, also where the node may not watch it", async () => {
  const world = new ConfigMapWorld("ns/cfg/key.yaml");
  world.map = { metadata: { uid: "u", resourceVersion: "1" }, data: { "key.yaml": "a" } };
  await using scope = new TaskScope();
  scope.spawn("assigned", (signal) => world.assigned.run(signal));
  await settle();
  world.map = { metadata: { uid: "u", resourceVersion: "2" }, data: { "key.yaml": "b" } };
  await world.clock.advance(60_000);
  assert.deepEqual(world.proposals, [
    "watch ns/cfg",
    "flag /dyn/store/checkpoints/u/1/key.yaml",
    "flag /dyn/store/checkpoints/u/2/key.yaml",
  ]);
});
