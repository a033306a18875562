import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { memoryIo } from "../../../test/support/config-io.ts";
import { fileHeader } from "../../../test/support/load-config.ts";
import type { ConfigIo, LoadResult } from "./agent-config.ts";
import { flagTable } from "./flags/flag-table.ts";
import { loadConfig } from "./load.ts";

const file = "/etc/kubelet.yaml";

function ioWith(bytes: Uint8Array): ConfigIo {
  return memoryIo({ "/etc/conf.d/a.conf": "", [file]: "" }, { readFile: async () => bytes });
}

/** Either a configuration, or complaints that a person can act on. */
function assertCivil(result: LoadResult, placed: string | undefined): void {
  if (result.kind !== "invalid") return;
  assert.ok(result.problems.length > 0);
  for (const { message, place } of result.problems) {
    assert.ok(message.length > 0);
    assert.doesNotMatch(message, /TypeError|RangeError|\n\s+at |\[object Object\]|undefined/);
    if (placed !== undefined)
      assert.ok(place === undefined || place.startsWith(placed) || place.startsWith("--"), place);
    if (placed === file && result.step.includes("config file")) assert.ok(place?.startsWith(file), message);
  }
}

const runs = { numRuns: 80 };

test("any bytes as a configuration file", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      assertCivil(await loadConfig([`--config=${file}`], ioWith(bytes)), file);
    }),
    runs,
  );
});

test("any text after a proper header, in the file and in a drop-in", async () => {
  const text = fc.oneof(
    fc.string({ maxLength: 80, unit: "binary" }),
    fc.string({ maxLength: 80, unit: fc.constantFrom(..."{}[]:,-?&*!|>%@`'\"# \n\t~<ab01") }),
  );
  await fc.assert(
    fc.asyncProperty(text, async (body) => {
      const bytes = new TextEncoder().encode(fileHeader + body);
      assertCivil(await loadConfig([`--config=${file}`], ioWith(bytes)), file);
      assertCivil(await loadConfig(["--config-dir=/etc/conf.d"], ioWith(bytes)), "/etc/conf.d");
    }),
    runs,
  );
});

test("very many keys, and a file without end, are refused in time that grows with the file", async () => {
  const load = async (body: string) => {
    const before = process.cpuUsage();
    const result = await loadConfig([`--config=${file}`], ioWith(new TextEncoder().encode(fileHeader + body)));
    const { user, system } = process.cpuUsage(before);
    return { result, cpu: user + system };
  };
  const count = 12_000;
  const keys = Array.from({ length: count }, (_, index) => `k${index}: b\n`).join("");
  await load(keys.slice(0, 10_000));
  const listed = await load(`a:\n${"- b: c\n".repeat(count)}`);
  const many = await load(keys);
  assert.equal(many.result.kind, "invalid");
  // Each held against each other took six times as long as the list; now it is less.
  assert.ok(many.cpu < 3 * listed.cpu, `${many.cpu} µs beside ${listed.cpu} µs`);
  const { result } = await load("#".repeat(1024 * 1024));
  assert.ok(result.kind === "invalid" && /larger than 1048576 bytes/.test(result.problems[0]?.message ?? ""));
});

const proper = `${fileHeader}authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false, cacheTTL: 1m}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 100Mi, nodefs.available: "10%"}
registerWithTaints: [{key: a, value: b, effect: NoSchedule}]
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
logging: {verbosity: 2, vmodule: [{filePattern: a, verbosity: 1}]}
shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]
maxPods: 50
memoryThrottlingFactor: 0.5
reservedSystemCPUs: 0-1
tracing: {endpoint: localhost:4317}
`;

test("a proper file with a few characters changed", async () => {
  const edit = fc.tuple(fc.nat(proper.length - 1), fc.nat(3), fc.string({ maxLength: 3 }));
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 3 }), async (edits) => {
      const text = edits.reduce(
        (whole, [at, removed, added]) => whole.slice(0, at) + added + whole.slice(at + removed),
        proper,
      );
      assertCivil(await loadConfig([`--config=${file}`], ioWith(new TextEncoder().encode(text))), file);
    }),
    runs,
  );
});

test("any JSON value for any field", async () => {
  const names = [
    "maxPods",
    "evictionHard",
    "authentication",
    "logging",
    "registerWithTaints",
    "syncFrequency",
    "featureGates",
    "tracing",
    "reservedMemory",
    "staticPodURLHeader",
    "kubeReserved",
    "failSwapOn",
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 }), async (name, value) => {
      const text = JSON.stringify({
        apiVersion: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        [name]: value,
      });
      const bytes = new TextEncoder().encode(text);
      assertCivil(await loadConfig([`--config=${file}`], ioWith(bytes)), file);
      assertCivil(await loadConfig(["--config-dir=/etc/conf.d"], ioWith(bytes)), "/etc/conf.d");
    }),
    runs,
  );
});

test("any command line", async () => {
  const name = fc.oneof(fc.constantFrom(...flagTable.keys()), fc.string({ maxLength: 10 }));
  const word = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.tuple(name, fc.string({ maxLength: 12 })).map(([flag, value]) => `--${flag}=${value}`),
    name.map((flag) => `--${flag}`),
    fc.string({ maxLength: 4 }).map((letters) => `-${letters}`),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(word, { maxLength: 5 }), async (argv) => {
      assertCivil(await loadConfig(argv, memoryIo()), undefined);
    }),
    runs,
  );
});

test("aliases that stand for billions of values are refused quickly", async () => {
  const levels = Array.from(
    { length: 12 },
    (_, level) => `a${level + 1}: &a${level + 1} [${Array(9).fill(`*a${level}`).join(", ")}]`,
  );
  const text = `${fileHeader}a0: &a0 [x]\n${levels.join("\n")}\n`;
  const result = await loadConfig([`--config=${file}`], ioWith(new TextEncoder().encode(text)));
  assert.ok(result.kind === "invalid");
  assert.match(result.message, /more than 20000 values/);
});
