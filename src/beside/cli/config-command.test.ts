import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { memoryIo } from "../../../test/support/config-io.ts";
import { configOf, fileHeader } from "../../../test/support/load-config.ts";
import { loadConfig } from "../../ground/config/index.ts";
import { configCommandOn, describeUnheeded } from "./config-command.ts";
import { versionCommand } from "./version-command.ts";

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(args: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const { io, stdout, stderr } = recordIo("/");
  const code = await configCommandOn(memoryIo(files))(args, io);
  return { code, out: stdout(), err: stderr() };
}

const files = {
  "/etc/kubelet.yaml": `${fileHeader}maxPods: 20\nclusterDNS: [10.0.0.10]\nevictionHard: {memory.available: 1Gi}\nhairpinMode: none\nstaticPodURLHeader: {Authorization: [Bearer secret]}\n`,
  "/etc/conf.d/10.conf": `${fileHeader}evictionHard:\n  nodefs.available: 5%\n`,
};
const argv = [
  "--kubeconfig=/k",
  "--config=/etc/kubelet.yaml",
  "--config-dir=/etc/conf.d",
  "--kube-reserved=cpu=1",
  "--boot-id-file=/x",
];

test("what this machine has not what it takes for is said", async () => {
  const config = { "/etc/kubelet.yaml": `${fileHeader}shutdownGracePeriod: 30s\n` };
  const args = ["--kubeconfig=/k", "--config=/etc/kubelet.yaml"];
  const { out } = await run(args, config);
  assert.match(out, /# Not in effect on this machine: there is no system bus.*\n# {3}shutdownGracePeriod \(file /);
  const withBus = await run(args, { ...config, "/run/dbus/system_bus_socket": "" });
  assert.doesNotMatch(withBus.out, /Not in effect on this machine/);
});

test("the effective configuration, with the origin of every value", async () => {
  const { code, out, err } = await run(argv, files);
  assert.equal(code, 0);
  for (const line of [
    "maxPods: 20  # file /etc/kubelet.yaml:3; changes with a restart",
    'clusterDNS: ["10.0.0.10"]  # file /etc/kubelet.yaml:4; changes with a restart',
    "evictionHard:  # file /etc/kubelet.yaml:5; changes with a restart",
    '  memory.available: "1Gi"  # file /etc/kubelet.yaml:5',
    '  nodefs.available: "5%"  # drop-in 1 /etc/conf.d/10.conf:4',
    '  cpu: "1"  # flag --kube-reserved',
    "port: 10250  # default; changes with a restart",
    "imageGCHighThresholdPercent: 85  # default; changes at once",
    'cgroupRoot: ""  # default; fixed while the agent runs',
    "# maxParallelImagePulls is not set  # default; changes with a restart",
    '    cacheTTL: "2m0s"  # default; changes with a restart',
    "# --kubeconfig=/k  # flag --kubeconfig",
    "# --root-dir=/var/lib/kubelet  # default",
  ]) {
    assert.ok(out.split("\n").includes(line), line);
  }
  assert.ok(err.startsWith("warning: Flag --kube-reserved has been deprecated, "));
});

test("what is given but has no effect is listed, apart from what is only a default", async () => {
  const { out } = await run(argv, files);
  const never = "#   hairpinMode (file /etc/kubelet.yaml:6)\n#   --boot-id-file (flag --boot-id-file)\n";
  assert.ok(out.endsWith(`# Without effect, as in the kubelet:\n${never}`));
  const setting = { value: 1, default: undefined, keyOrigins: {}, whenChanged: undefined } as const;
  const given = { from: "flag", flag: "x" } as const;
  assert.equal(
    describeUnheeded([
      { ...setting, name: "a", origin: given, effect: "not yet" },
      { ...setting, name: "b", origin: given, effect: "yes" },
      { ...setting, name: "c", origin: { from: "default" }, effect: "not yet" },
    ]),
    "# Not yet in effect: read and checked, but no part of nodelet acts on these yet.\n#   a (flag --x)\n",
  );
});

test("headers may be secrets, addresses may hold passwords: they are masked", async () => {
  const { out } = await run([...argv, "--manifest-url=https://me:hunter2@pods.example/list"], files);
  assert.ok(out.includes('Authorization: ["<masked>"]'));
  assert.ok(out.includes('staticPodURL: "https://<masked>@pods.example/list"'), out);
  assert.ok(!out.includes("Bearer") && !out.includes("hunter2"));
});

test("what is printed can be read again and comes to the same", async () => {
  const given =
    files["/etc/kubelet.yaml"].replace(/staticPodURLHeader.*\n/, "") +
    'featureGates: {MemoryQoS: true}\nproviderID: "on"\nclusterDomain: "a # b: c"\nregisterWithTaints: [{key: a, effect: NoSchedule}]\ntracing: {endpoint: "x:1"}\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\nlogging: {vmodule: [{filePattern: a, verbosity: 1}]}\n';
  const flags = ["--kubeconfig=/k", "--config=/etc/kubelet.yaml"];
  const { out } = await run(flags, { "/etc/kubelet.yaml": given });
  const kubeletOf = async (text: string) =>
    configOf(await loadConfig(flags, memoryIo({ "/etc/kubelet.yaml": text }))).kubelet;
  assert.deepEqual(await kubeletOf(out), await kubeletOf(given));
});

test("problems are all told, with exit code 1", async () => {
  for (const args of [
    ["--max-pods=-1", "--port=0"],
    ["--check", "--max-pods=-1", "--port=0"],
  ]) {
    const { code, out, err } = await run(args);
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.ok(
      err.endsWith(
        "nodelet config: 2 problems, failed to validate kubelet configuration, error:\n" +
          "  invalid configuration: port (--port) 0 must be between 1 and 65535, inclusive\n" +
          "  invalid configuration: maxPods (--max-pods) -1 must not be a negative number\n",
      ),
      err,
    );
  }
  const broken = await run(["--check", "--config=/etc/kubelet.yaml"], {
    "/etc/kubelet.yaml": `${fileHeader}maxPods: many\n`,
  });
  assert.equal(
    broken.err,
    "nodelet config: 1 problem, failed to load kubelet config file, path: /etc/kubelet.yaml, error:\n" +
      '  maxPods: wanted an integer of 32 bits, found the string "many" (/etc/kubelet.yaml:3:10)\n',
  );
});

test("a misspelt command below this one is told what may have been meant", async () => {
  const { code, out, err } = await run(["tri", "file.yaml"]);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /^nodelet: unknown command config tri; did you mean "nodelet config try"\?\n/);
});

test("--check prints no configuration, warnings and what has no effect on stderr, exit code 0", async () => {
  const { code, out, err } = await run(["--check", ...argv], files);
  assert.deepEqual([code, out], [0, "The configuration is valid.\n"]);
  assert.match(err, /^warning: Flag --kube-reserved/);
  assert.match(err, /hairpinMode \(file/);
});

test("--help explains the command, --version prints the version", async () => {
  assert.match((await run(["--help"])).out, /^usage: nodelet config \[--check\]/);
  assert.match((await run(["--version"])).out, /^Kubernetes v1\.34\./);
});

test("-o json: every setting with its origin, for programs", async () => {
  for (const wish of [["-o", "json"], ["--output=json"], ["--json"]]) {
    const { code, out } = await run([...argv, ...wish], files);
    assert.equal(code, 0);
    const { apiVersion, kind, settings } = JSON.parse(out);
    assert.deepEqual([apiVersion, kind], ["nodelet.dev/v1", "Config"]);
    const maxPods = settings.find(({ name }: { name: string }) => name === "maxPods");
    assert.deepEqual(maxPods, { name: "maxPods", value: 20, origin: "file /etc/kubelet.yaml:3", effect: "yes" });
    assert.doesNotMatch(out, /Bearer/);
  }
});

test("nodelet version", async () => {
  const { io, stdout } = recordIo("/");
  assert.equal(await versionCommand([], io), 0);
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  assert.ok(typeof manifest === "object" && manifest !== null && "version" in manifest);
  assert.equal(stdout(), `nodelet ${manifest.version}\nKubernetes v1.34.11 (the kubelet it replaces)\n`);
});
