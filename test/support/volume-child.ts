// An agent's volume engine alone, as a process that is meant to be killed: mounts and unmounts pods in a directory until
// it dies. What it had promised its pods is in a journal, which the next one reads and holds itself to.
// Usage: volume-child ROOT REGISTRY work|clean
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTool } from "../../src/connections/host/index.ts";
import { CsiDrivers, PluginRegistration } from "../../src/connections/plugins/index.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { type IdentifiedPod, type PodUid, uidOf } from "../../src/ground/model/index.ts";
import { CsiVolumes, TokenManager, VolumeFiles } from "../../src/pod/volumes/index.ts";
import { MemoryCsiCluster, testNodeName } from "./csi-cluster.ts";
import { MemoryClaims } from "./memory-claims.ts";
import { until } from "./until.ts";
import { podWithVolumes, VolumeNode } from "./volume-node.ts";

const [root = "", registry = "", mode = "work"] = process.argv.slice(2);
const journal = join(root, "journal");
const driver = "csi.example.com";
const podCount = 8;
const never = new AbortController().signal;

const claims = new MemoryClaims();
claims.bind("local", { local: { path: join(root, "local") }, accessModes: ["ReadWriteMany"] });
claims.bind("csi", { csi: { driver, volumeHandle: "vol", fsType: "ext4" }, accessModes: ["ReadWriteMany"] });
const cluster = new MemoryCsiCluster();
cluster.driver(driver, { attachRequired: false });
const clock = systemClock;
const log = silentLogger;
const drivers = new CsiDrivers({ clock, log, records: undefined, onRegistered: () => node.volumes.retryNow() });
const node: VolumeNode = VolumeNode.at(root, {
  claims,
  lateKinds: () => [
    new CsiVolumes({
      clock,
      log,
      random: Math.random,
      recordEvent() {},
      run: runTool,
      files: new VolumeFiles({ clock, rootDir: root }),
      drivers,
      cluster,
      tokens: new TokenManager({ request: undefined, clock, log, random: Math.random }),
      onInUse() {},
      nodeName: testNodeName,
      pluginsDir: join(root, "plugins"),
      syncFrequencyMs: 60_000,
    }),
  ],
});
node.objects.configMap("settings", { a: "1" });
node.objects.secret("keys", { k: "v" });
const registration = new PluginRegistration({
  directory: registry,
  handlers: new Map([["CSIPlugin", drivers]]),
  clock,
  log,
});
node.scope.spawn("plugins", (signal) => registration.run(signal));
await until("the driver is registered", () => drivers.names().length > 0);
await node.volumes.restore();

const pods = Array.from({ length: podCount }, (_, index) =>
  podWithVolumes(
    [
      { name: "disk", emptyDir: {} },
      { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
      { name: "settings", configMap: { name: "settings" } },
      { name: "keys", secret: { secretName: "keys" } },
      { name: "local", persistentVolumeClaim: { claimName: "local" } },
      { name: "csi", persistentVolumeClaim: { claimName: "csi" } },
      { name: "host", hostPath: { path: join(root, "host"), type: "DirectoryOrCreate" } },
    ],
    {},
    { name: `pod-${index}`, uid: `uid-${index}` },
  ),
);

/** What was promised to each pod: its token if its containers may rely on it. */
const promised = new Map<string, string>();
for (const line of mode === "clean" ? [] : readLines(journal)) {
  const [word = "", uid = "", token = ""] = line.split(" ");
  if (word === "wrote") promised.set(uid, token);
  else promised.delete(uid);
}

const known = new Set([...promised.keys()].map((uid) => uid as PodUid));
process.stdout.write("up\n");
const { problems } = await node.volumes.cleanOrphanedDirectories(known, never);
if (problems.length > 0) fail(`orphaned directories remain: ${JSON.stringify(problems)}`);
for (const pod of pods) {
  const token = promised.get(uidOf(pod));
  if (token === undefined) continue;
  await node.volumes.mount(pod, never);
  for (const name of ["disk", "memory"]) {
    const found = readFileSync(join(scratch(pod, name), "token"), "utf8");
    if (found !== token) fail(`${uidOf(pod)} lost what it had written to ${name}: "${found}" instead of "${token}"`);
  }
}

if (mode === "work") await Promise.all(pods.map(live));
await node.scope.stop();

/** A pod that comes and goes for ever. */
async function live(pod: IdentifiedPod): Promise<void> {
  const uid = uidOf(pod);
  for (let turn = 0; ; turn++) {
    if (turn > 0 || !promised.has(uid)) {
      await node.volumes.mount(pod, never);
      const part = { pod, containerName: "main", volumeName: "host", volumePath: join(root, "host"), mountIndex: 0 };
      await node.volumes.subPaths.create({ ...part, subPath: uid });
      const mounted = await node.volumes.subPaths.prepare({ ...part, subPath: uid });
      const token = String(Math.random());
      writeFileSync(join(mounted, "token"), token);
      for (const name of ["disk", "memory"]) writeFileSync(join(scratch(pod, name), "token"), token);
      appendFileSync(journal, `wrote ${uid} ${token}\n`);
    }
    await clock.sleep(Math.random() * 30, never);
    appendFileSync(journal, `ends ${uid}\n`);
    await node.volumes.unmount(uid);
  }
}

function scratch(pod: IdentifiedPod, name: string): string {
  return node.volumePath(uidOf(pod), "kubernetes.io/empty-dir", name);
}

function readLines(file: string): readonly string[] {
  mkdirSync(root, { recursive: true });
  appendFileSync(file, "");
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(3);
}
