import assert from "node:assert/strict";
import { test } from "node:test";
import { podWithVolumes } from "../../../test/support/volume-node.ts";
import type { PodSpec, Volume } from "../../ground/model/index.ts";
import { type PodDisk, storageExcess, storageLimitsOf } from "./storage-limits.ts";

const Ki = 1024n;
const limited = (name: string, storage: string) => ({
  name,
  image: "x",
  resources: { limits: { "ephemeral-storage": storage } },
});
const scratch = (name: string, usedBytes: bigint, isLocalEphemeral = true) => ({ name, usedBytes, isLocalEphemeral });
const disk = (more: Partial<PodDisk>): PodDisk => ({ volumes: [], containers: new Map(), ownBytes: 0n, ...more });
const holds = (logBytes: bigint, layerBytes = 0n) => ({ logBytes, layerBytes });

interface Case {
  readonly name: string;
  readonly volumes?: readonly Volume[];
  readonly spec?: Partial<PodSpec>;
  readonly disk: Partial<PodDisk>;
  readonly layers?: "on the node's disk" | "on a disk of their own";
  readonly expected: string | undefined;
}

const ofVolume = 'Usage of EmptyDir volume "v" exceeds the limit "100Ki". ';
const cases: readonly Case[] = [
  {
    name: "a scratch volume over its limit",
    volumes: [{ name: "v", emptyDir: { sizeLimit: "100Ki" } }],
    disk: { volumes: [scratch("v", 101n * Ki)] },
    expected: ofVolume,
  },
  {
    name: "a scratch volume in memory over its limit",
    volumes: [{ name: "v", emptyDir: { medium: "Memory", sizeLimit: "102400" } }],
    disk: { volumes: [scratch("v", 101n * Ki, false)] },
    expected: 'Usage of EmptyDir volume "v" exceeds the limit "102400". ',
  },
  {
    name: "a scratch volume at its limit",
    volumes: [{ name: "v", emptyDir: { sizeLimit: "100Ki" } }],
    disk: { volumes: [scratch("v", 100n * Ki)] },
    expected: undefined,
  },
  {
    name: "a limit of zero is none",
    volumes: [{ name: "v", emptyDir: { sizeLimit: "0" } }],
    disk: { volumes: [scratch("v", 100n * Ki)] },
    expected: undefined,
  },
  {
    name: "a volume that was not measured",
    volumes: [{ name: "v", emptyDir: { sizeLimit: "1" } }],
    disk: {},
    expected: undefined,
  },
  {
    name: "the pod over the sum of its containers' limits: logs, layers, volumes, hosts file",
    spec: { containers: [limited("a", "10Ki"), limited("b", "20Ki")] },
    disk: {
      volumes: [scratch("v", 10n * Ki), scratch("memory", 1000n * Ki, false)],
      containers: new Map([
        ["a", holds(5n * Ki, 5n * Ki)],
        ["b", holds(1n * Ki, 8n * Ki)],
      ]),
      ownBytes: 2n * Ki,
    },
    expected: "Pod ephemeral local storage usage exceeds the total limit of containers 30Ki. ",
  },
  {
    // As in CVE-2020-8557: what a pod wrote to its hosts file was not counted.
    name: "the hosts file alone",
    spec: { containers: [limited("a", "10Ki")] },
    disk: { ownBytes: 11n * Ki },
    expected: "Pod ephemeral local storage usage exceeds the total limit of containers 10Ki. ",
  },
  {
    name: "one container over its own limit",
    spec: { containers: [limited("a", "10Ki"), limited("b", "20Ki")] },
    disk: { containers: new Map([["a", holds(5n * Ki, 6n * Ki)]]) },
    expected: 'Container a exceeded its local ephemeral storage limit "10Ki". ',
  },
  {
    name: "a sidecar over its own limit",
    spec: {
      containers: [limited("a", "20Ki")],
      initContainers: [limited("prepares", "10Ki"), { ...limited("beside", "10Ki"), restartPolicy: "Always" }],
    },
    disk: {
      containers: new Map([
        ["prepares", holds(11n * Ki)],
        ["beside", holds(5n * Ki, 6n * Ki)],
      ]),
    },
    expected: 'Container beside exceeded its local ephemeral storage limit "10Ki". ',
  },
  {
    name: "layers on another disk do not count against the container",
    spec: { containers: [limited("a", "10Ki"), limited("b", "20Ki")] },
    disk: { containers: new Map([["a", holds(5n * Ki, 6n * Ki)]]) },
    layers: "on a disk of their own",
    expected: undefined,
  },
  {
    name: "a container's limit of zero is none, as long as the pod keeps to the sum",
    spec: { containers: [limited("a", "0"), limited("b", "20Ki")] },
    disk: { containers: new Map([["a", holds(5n * Ki, 6n * Ki)]]) },
    expected: undefined,
  },
  {
    name: "the volume is named before the pod",
    volumes: [{ name: "v", emptyDir: { sizeLimit: "100Ki" } }],
    spec: { containers: [limited("a", "10Ki")] },
    disk: { volumes: [scratch("v", 200n * Ki)] },
    expected: ofVolume,
  },
  { name: "no limit at all", disk: { ownBytes: 1n << 60n }, expected: undefined },
];
for (const { name, volumes = [], spec = {}, disk: used, layers = "on the node's disk", expected } of cases) {
  test(`limits of local storage: ${name}`, () => {
    assert.equal(storageExcess(podWithVolumes(volumes, spec), disk(used), layers)?.message, expected);
  });
}

test("only pods with limits are measured", () => {
  const limits = (volumes: readonly Volume[], spec: Partial<PodSpec> = {}) =>
    storageLimitsOf(podWithVolumes(volumes, spec));
  assert.deepEqual(limits([{ name: "v", emptyDir: {} }]), { ofVolumes: false, ofDisk: false });
  assert.deepEqual(limits([{ name: "v", emptyDir: { sizeLimit: "1Mi" } }]), { ofVolumes: true, ofDisk: false });
  assert.deepEqual(limits([], { containers: [limited("a", "1Gi")] }), { ofVolumes: false, ofDisk: true });
});
