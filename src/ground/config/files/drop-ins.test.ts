import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { configOf, fileHeader, problemsOf } from "../../../../test/support/load-config.ts";
import { loadConfig } from "../load.ts";
import { systemIo } from "../system-io.ts";

/** Files and links below a directory of their own; `-> target` makes a link. */
async function withFiles(files: Readonly<Record<string, string>>, run: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "nodelet-config-"));
  try {
    for (const [name, content] of Object.entries(files)) {
      const path = join(root, name);
      await mkdir(dirname(path), { recursive: true });
      if (content.startsWith("-> ")) await symlink(content.slice(3), path);
      else await writeFile(path, content.startsWith("raw:") ? content.slice(4) : fileHeader + content);
    }
    await run(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

const load = (root: string, ...flags: string[]) => loadConfig(["--kubeconfig=/k", ...flags], systemIo(root));
const warningsOf = (config: { warnings: readonly { message: string }[] }) =>
  config.warnings.map(({ message }) => message);

test("drop-ins apply in the order of a directory walk, deep ones where their directory sorts", () =>
  withFiles(
    {
      "d/10-first.conf": "maxPods: 10\npodsPerCore: 1\nregistryBurst: 1\n",
      "d/20-dir/99.conf": "maxPods: 20\npodsPerCore: 2\n",
      "d/30-last.conf": "maxPods: 30\n",
      "d/99-other.yaml": "maxPods: 99\n",
      "d/99-other.conf.bak": "maxPods: 98\n",
    },
    async (root) => {
      const { kubelet, origins } = configOf(await load(root, "--config-dir=d"));
      assert.deepEqual([kubelet.maxPods, kubelet.podsPerCore, kubelet.registryBurst], [30, 2, 1]);
      assert.deepEqual(origins["maxPods"], { from: "drop-in", index: 3, path: join(root, "d/30-last.conf"), line: 3 });
      assert.deepEqual(origins["podsPerCore"], {
        from: "drop-in",
        index: 2,
        path: join(root, "d/20-dir/99.conf"),
        line: 4,
      });
    },
  ));

test("drop-ins win over the file and lose against flags", () =>
  withFiles(
    { "kubelet.yaml": "maxPods: 1\nregistryBurst: 1\nport: 1\n", "d/a.conf": "maxPods: 2\nregistryBurst: 2\n" },
    async (root) => {
      const { kubelet } = configOf(await load(root, "--config=kubelet.yaml", "--config-dir=d", "--max-pods=3"));
      assert.deepEqual([kubelet.maxPods, kubelet.registryBurst, kubelet.port], [3, 2, 1]);
    },
  ));

test("maps merge by key, lists replace, null removes", () =>
  withFiles(
    {
      "kubelet.yaml":
        "evictionHard: {memory.available: 1Gi, pid.available: 5%}\nclusterDNS: [10.0.0.1]\nfeatureGates: {MemoryQoS: true, NodeLogQuery: true}\n" +
        "authentication: {anonymous: {enabled: true}}\nmaxPods: 7\nlogging: {verbosity: 4}\ntracing: {endpoint: a}\nkubeReserved: {cpu: '1'}\n",
      "d/a.conf":
        "evictionHard: {pid.available: null, nodefs.available: 5%}\nclusterDNS: [10.0.0.2]\nfeatureGates: {MemoryQoS: null}\n" +
        "authentication: null\nmaxPods: null\nlogging: {flushFrequency: 1s}\ntracing: null\nkubeReserved: null\n",
    },
    async (root) => {
      const { kubelet, origins, gates } = configOf(await load(root, "--config=kubelet.yaml", "--config-dir=d"));
      assert.deepEqual(kubelet.evictionHard, { "memory.available": "1Gi", "nodefs.available": "5%" });
      assert.deepEqual(
        [origins['evictionHard["memory.available"]']?.from, origins['evictionHard["nodefs.available"]']?.from],
        ["file", "drop-in"],
      );
      assert.equal(origins['evictionHard["pid.available"]'], undefined);
      assert.deepEqual(kubelet.clusterDNS, ["10.0.0.2"]);
      assert.deepEqual([gates.enabled("MemoryQoS"), gates.enabled("NodeLogQuery")], [false, true]);
      assert.equal(kubelet.authentication.anonymous.enabled, false);
      assert.equal(kubelet.maxPods, 110);
      assert.deepEqual([kubelet.logging.verbosity, kubelet.logging.flushFrequencyMs], [4, 1000]);
      assert.equal(kubelet.tracing, undefined);
      assert.deepEqual(kubelet.kubeReserved, {});
    },
  ));

test("removing evictionHard leaves no hard thresholds; merging defaults acts on the main file only", () =>
  withFiles(
    {
      "kubelet.yaml": "mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi}\n",
      "d/a.conf": "evictionHard: null\n",
    },
    async (root) => {
      assert.equal(Object.keys(configOf(await load(root, "--config=kubelet.yaml")).kubelet.evictionHard).length, 5);
      assert.deepEqual(configOf(await load(root, "--config=kubelet.yaml", "--config-dir=d")).kubelet.evictionHard, {});
    },
  ));

test("without --config the legacy defaults stay unless a drop-in changes them, and null gives the file default", () =>
  withFiles({ "d/a.conf": "readOnlyPort: null\nauthorization: {mode: null}\n" }, async (root) => {
    const { kubelet } = configOf(await load(root, "--config-dir=d"));
    assert.equal(kubelet.authentication.anonymous.enabled, true);
    assert.deepEqual([kubelet.readOnlyPort, kubelet.authorization.mode], [0, "Webhook"]);
    assert.deepEqual(kubelet.evictionHard, {});
  }));

test("a drop-in does not drag nodeStatusReportFrequency or serializeImagePulls along", () =>
  withFiles(
    { "kubelet.yaml": "", "d/a.conf": "nodeStatusUpdateFrequency: 5s\n", "e/a.conf": "maxParallelImagePulls: 3\n" },
    async (root) => {
      assert.equal(
        configOf(await load(root, "--config=kubelet.yaml", "--config-dir=d")).kubelet.nodeStatusReportFrequencyMs,
        300_000,
      );
      const [problem] = problemsOf(await load(root, "--config=kubelet.yaml", "--config-dir=e"));
      assert.match(
        problem?.message ?? "",
        /maxParallelImagePulls 3 cannot be larger than 1 unless serializeImagePulls/,
      );
      assert.equal(problem?.place, `${join(root, "e/a.conf")}:3`);
    },
  ));

test("an empty enforceNodeAllocatable of the main file becomes the default when drop-ins are read, with a warning", () =>
  withFiles(
    { "kubelet.yaml": "enforceNodeAllocatable: []\n", "d/readme": "", "e/a.conf": "enforceNodeAllocatable: []\n" },
    async (root) => {
      assert.deepEqual(configOf(await load(root, "--config=kubelet.yaml")).kubelet.enforceNodeAllocatable, []);
      const config = configOf(await load(root, "--config=kubelet.yaml", "--config-dir=d"));
      assert.deepEqual(config.kubelet.enforceNodeAllocatable, ["pods"]);
      assert.match(warningsOf(config).join(), /enforceNodeAllocatable: the empty list becomes the default/);
      assert.deepEqual(configOf(await load(root, "--config-dir=e")).kubelet.enforceNodeAllocatable, []);
    },
  ));

test("links to files are read, links to directories are not", () =>
  withFiles(
    {
      "real/a.conf": "maxPods: 5\n",
      "outside.conf": "registryBurst: 6\n",
      "d/b.conf": "-> ../outside.conf",
      "d/linked": "-> ../real",
    },
    async (root) => {
      const { kubelet } = configOf(await load(root, "--config-dir=d"));
      assert.deepEqual([kubelet.maxPods, kubelet.registryBurst], [110, 6]);
    },
  ));

test("a linked --config-dir loads nothing, and says so", () =>
  withFiles({ "real/a.conf": "maxPods: 5\n", linked: "-> real" }, async (root) => {
    const config = configOf(await load(root, "--config-dir=linked"));
    assert.equal(config.kubelet.maxPods, 110);
    assert.match(warningsOf(config).join(), /--config-dir linked is a symbolic link, no drop-in is loaded/);
  }));

test("unknown fields of a drop-in are warned of; another case is understood as upstream does", () =>
  withFiles(
    {
      "d/a.conf":
        "maxPod: 5\nmaxpods: 6\nMaxOpenFiles: 7\nTracing: {}\nlogging: {verbositi: 2}\nregisterWithTaints: [{key: a, efect: b}]\n",
    },
    async (root) => {
      const config = configOf(await load(root, "--config-dir=d"));
      const file = join(root, "d/a.conf");
      assert.equal(config.kubelet.maxPods, 6);
      // Capitals sort before small letters, so the default, read later, stays.
      assert.equal(config.kubelet.maxOpenFiles, 1_000_000);
      assert.deepEqual(
        warningsOf(config).filter((text) => text.startsWith(file)),
        [
          `${file}:3:1: unknown field "maxPod" (did you mean maxPods?)`,
          `${file}:4:1: unknown field "maxpods", taken for maxPods`,
          `${file}:5:1: unknown field "MaxOpenFiles" (did you mean maxOpenFiles?)`,
          `${file}:6:1: unknown field "Tracing", taken for tracing`,
          `${file}:7:11: unknown field "logging.verbositi" (did you mean verbosity?)`,
          `${file}:8:31: unknown field "registerWithTaints[0].efect" (did you mean effect?)`,
        ],
      );
    },
  ));

test("relative paths of a drop-in start at the working directory, with a warning", () =>
  withFiles({ "d/a.conf": "staticPodPath: manifests\n" }, async (root) => {
    const config = configOf(await load(root, "--config-dir=d"));
    assert.equal(config.kubelet.staticPodPath, "manifests");
    assert.match(
      warningsOf(config).join(),
      /staticPodPath: the relative path manifests of a drop-in starts at the working directory/,
    );
  }));

test("every drop-in that cannot be used is named, with what is wrong", () =>
  withFiles(
    {
      "d/1-empty.conf": "raw:",
      "d/2-broken.conf": "raw:a: b: c\n",
      "d/3-untyped.conf": "raw:maxPods: 1\n",
      "d/4-other.conf": "raw:apiVersion: v1\nkind: Pod\n",
      "d/5-twice.conf": "maxPods: 1\nmaxPods: 2\n",
      "d/6-type.conf": "maxPods: many\n",
      "d/7-gate.conf": "featureGates: {Nope: true}\n",
      "d/8-dir.conf": "-> ..",
    },
    async (root) => {
      const result = await load(root, "--config-dir=d");
      const messages = problemsOf(result).map(({ message }) => message.replaceAll(root, "ROOT"));
      assert.ok(result.kind === "invalid" && result.message.startsWith("failed to merge kubelet configs: ["));
      const expected = [
        'failed to load kubelet dropin file, path: ROOT/d/1-empty.conf, error: kubelet config file "ROOT/d/1-empty.conf" was empty',
        "failed to load kubelet dropin file, path: ROOT/d/2-broken.conf, error: failed to decode: Nested mappings",
        "failed to load kubelet dropin file, path: ROOT/d/3-untyped.conf, no apiVersion/kind",
        "failed to load kubelet dropin file, path: ROOT/d/4-other.conf, unknown apiVersion/kind: v1, Kind=Pod",
        'failed to load kubelet dropin file, path: ROOT/d/5-twice.conf, error: strict decoding error: ROOT/d/5-twice.conf:4:1: key "maxPods" is already set on line 3',
        'maxPods: wanted an integer of 32 bits, found the string "many"',
        "failed to load kubelet dropin file, path: ROOT/d/8-dir.conf, error: failed to read kubelet config file",
        "unrecognized feature gate: Nope",
      ];
      assert.equal(messages.length, expected.length);
      for (const [index, start] of expected.entries()) assert.ok(messages[index]?.startsWith(start), messages[index]);
    },
  ));

test("a missing --config-dir is an error", () =>
  withFiles({ readme: "" }, async (root) => {
    const result = await load(root, "--config-dir=absent");
    assert.ok(result.kind === "invalid");
    assert.match(
      result.message,
      /^failed to merge kubelet configs: failed to walk through kubelet dropin directory "absent": ENOENT/,
    );
  }));
