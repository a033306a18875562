import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { exampleContainer, examplePod } from "../../../../test/support/example-context.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import { managedHosts, nodeHosts, wantsHostsFile, writeHostsFile } from "./hosts-file.ts";
import { linkLegacyLog } from "./logs.ts";
import {
  containerDirectory,
  containerIdOfLegacyLog,
  containerLogDirectory,
  containerLogPath,
  hostsFilePath,
  legacyLogName,
  podLogDirectory,
  uidOfLogDirectory,
} from "./paths.ts";
import { createTerminationFile } from "./termination-file.ts";

async function inTemporaryDirectory(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "mapping-"));
  try {
    await run(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

const permissions = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

test("a managed hosts file, to the byte", () => {
  const aliases = [
    { ip: "1.2.3.4", hostnames: ["foo.local", "bar.local"] },
    { ip: "fd00::9", hostnames: ["six"] },
  ];
  assert.equal(
    managedHosts(["10.1.0.2", "fd00::2"], { hostname: "web", domain: "db.shop.svc.cluster.local" }, aliases),
    `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
10.1.0.2\tweb.db.shop.svc.cluster.local\tweb
fd00::2\tweb.db.shop.svc.cluster.local\tweb

# Entries added by HostAliases.
1.2.3.4\tfoo.local\tbar.local
fd00::9\tsix
`,
  );
});

test("without domain and aliases", () => {
  const lines = managedHosts(["10.1.0.2"], { hostname: "web", domain: "" }).split("\n");
  assert.deepEqual(lines.slice(7), ["10.1.0.2\tweb", ""]);
});

test("on the host's network the node's file is copied", () => {
  assert.equal(
    nodeHosts("127.0.0.1 localhost\n", [{ ip: "1.2.3.4", hostnames: ["foo"] }]),
    "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n\n# Entries added by HostAliases.\n1.2.3.4\tfoo\n",
  );
  assert.equal(nodeHosts("x\n"), "# Kubernetes-managed hosts file (host network).\nx\n");
});

test("who gets a managed hosts file", () => {
  const own = exampleContainer({ volumeMounts: [{ name: "v", mountPath: "/etc/hosts" }] });
  const beside = exampleContainer({ volumeMounts: [{ name: "v", mountPath: "/etc/hosts/" }] });
  const onHost = examplePod({ hostNetwork: true });
  assert.equal(wantsHostsFile(examplePod(), exampleContainer(), ["10.1.0.2"]), true);
  assert.equal(wantsHostsFile(examplePod(), exampleContainer(), []), false);
  assert.equal(wantsHostsFile(onHost, exampleContainer(), []), true);
  assert.equal(wantsHostsFile(examplePod(), own, ["10.1.0.2"]), false);
  assert.equal(wantsHostsFile(onHost, own, []), false);
  assert.equal(wantsHostsFile(examplePod(), beside, ["10.1.0.2"]), true);
});

test("the hosts file is readable by all, and rewritten in place for containers that have it mounted", async () => {
  await inTemporaryDirectory(async (directory) => {
    const path = join(directory, "etc-hosts");
    const hostname = { hostname: "web", domain: "" };
    await writeHostsFile(path, examplePod(), { podIps: ["10.1.0.2"], hostname });
    assert.equal(await permissions(path), 0o644);
    const { ino } = await stat(path);
    await writeHostsFile(path, examplePod(), { podIps: ["10.1.0.3"], hostname });
    assert.equal((await stat(path)).ino, ino);
    assert.match(await readFile(path, "utf8"), /\n10\.1\.0\.3\tweb\n$/);
  });
});

test("a hosts file that is as it should be is left alone, and one that a container wrote to is not", async () => {
  await inTemporaryDirectory(async (directory) => {
    const path = join(directory, "etc-hosts");
    const inputs = { podIps: ["10.1.0.2"], hostname: { hostname: "web", domain: "" } };
    await writeHostsFile(path, examplePod(), inputs);
    const content = await readFile(path, "utf8");
    await utimes(path, 1, 1);
    await writeHostsFile(path, examplePod(), inputs);
    assert.equal((await stat(path)).mtimeMs, 1_000);
    await writeFile(path, content.replace("10.1.0.2", "10.1.0.9"));
    await writeHostsFile(path, examplePod(), inputs);
    assert.equal(await readFile(path, "utf8"), content);
  });
});

test("a hosts file that a container made very long is not read", async () => {
  await inTemporaryDirectory(async (directory) => {
    const path = join(directory, "etc-hosts");
    const inputs = { podIps: ["10.1.0.2"], hostname: { hostname: "web", domain: "" } };
    await writeHostsFile(path, examplePod(), inputs);
    // It takes no room on the disk, so no limit of storage sees it either.
    await truncate(path, 300_000_000);
    const before = process.resourceUsage().maxRSS;
    await writeHostsFile(path, examplePod(), inputs);
    assert.ok(process.resourceUsage().maxRSS - before < 100_000);
    assert.match(await readFile(path, "utf8"), /\n10\.1\.0\.2\tweb\n$/);
  });
});

test("the node's file is read anew", async () => {
  await inTemporaryDirectory(async (directory) => {
    const nodeHostsPath = join(directory, "hosts");
    await writeFile(nodeHostsPath, "192.0.2.1 node\n");
    const path = join(directory, "etc-hosts");
    const inputs = { podIps: [], hostname: { hostname: "web", domain: "" }, nodeHostsPath };
    await writeHostsFile(path, examplePod({ hostNetwork: true }), inputs);
    assert.equal(await readFile(path, "utf8"), "# Kubernetes-managed hosts file (host network).\n192.0.2.1 node\n");
  });
});

test("a termination file: new each time, eight hex digits, anyone may write, the directory is ours", async () => {
  await inTemporaryDirectory(async (root) => {
    const directory = containerDirectory({ rootDir: root }, "u-1", "app");
    assert.equal(directory, join(root, "pods/u-1/containers/app"));
    const [first, second] = [await createTerminationFile(directory), await createTerminationFile(directory)];
    assert.notEqual(first, second);
    assert.equal(dirname(first), directory);
    assert.match(basename(first), /^[0-9a-f]{8}$/);
    assert.equal(await permissions(first), 0o666);
    assert.equal(await permissions(directory), 0o750);
    assert.equal(await readFile(first, "utf8"), "");
  });
});

test("paths of logs and hosts files", () => {
  const directories = { rootDir: "/var/lib/kubelet", podLogsDir: "/var/log/pods" };
  assert.equal(podLogDirectory(directories, examplePod()), "/var/log/pods/shop_web_u-1");
  assert.equal(containerLogDirectory(directories, examplePod(), "app"), "/var/log/pods/shop_web_u-1/app");
  assert.equal(containerLogPath("app", 3), "app/3.log");
  assert.equal(hostsFilePath(directories, "u-1"), "/var/lib/kubelet/pods/u-1/etc-hosts");
  assert.equal(uidOfLogDirectory("shop_web_u-1"), "u-1");
  assert.equal(uidOfLogDirectory("u-1"), "u-1");
});

test("the name for log collectors is cut before its ending", () => {
  const id = "f".repeat(64);
  assert.equal(legacyLogName(examplePod(), "app", id), `web_shop_app-${id}.log`);
  const pod = examplePod();
  const long = { ...pod, metadata: { ...pod.metadata, name: "n".repeat(200) } };
  const name = legacyLogName(long, "app", id);
  assert.equal(name.length, 255);
  assert.equal(name, `${`${"n".repeat(200)}_shop_app-${id}`.slice(0, 251)}.log`);
});

test("the container id is read back from such a name", () => {
  assert.equal(containerIdOfLegacyLog("web_shop_my-app-0123abcdef.log"), "0123abcdef");
  assert.equal(containerIdOfLegacyLog("web_shop_my-app-012345.log"), "012345");
  assert.equal(containerIdOfLegacyLog("web_shop_my-app-01234.log"), undefined);
  assert.equal(containerIdOfLegacyLog("web_shop_my-app-0123abcdef"), undefined);
});

test("a started container's log is linked where collectors look, if there is one", async () => {
  await inTemporaryDirectory(async (root) => {
    const podLogsDir = join(root, "pods");
    const legacyDir = join(root, "containers");
    await mkdir(legacyDir);
    const pod = examplePod();
    const settings = { podLogsDir, legacyDir, log: silentLogger };
    const started = { pod, name: "app", id: "0123456789", restartCount: 2 };
    await linkLegacyLog(started, settings);
    assert.deepEqual(await readdir(legacyDir), []);
    const target = join(podLogsDir, "shop_web_u-1/app/2.log");
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, "hello");
    await linkLegacyLog(started, settings);
    assert.equal(await readlink(join(legacyDir, "web_shop_app-0123456789.log")), target);
  });
});

test("a link that cannot be made is logged and does not fail the container", async () => {
  await inTemporaryDirectory(async (root) => {
    const pod = examplePod();
    const logDirectory = containerLogDirectory({ podLogsDir: root }, pod, "app");
    await mkdir(logDirectory, { recursive: true });
    await writeFile(join(logDirectory, "0.log"), "");
    const errors: string[] = [];
    const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
    await linkLegacyLog(
      { pod, name: "app", id: "0123456789", restartCount: 0 },
      { podLogsDir: root, legacyDir: join(root, "missing"), log },
    );
    assert.deepEqual(errors, ["Failed to create legacy symbolic link"]);
  });
});
