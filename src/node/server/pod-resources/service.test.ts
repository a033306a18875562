import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { testContainer, testPod } from "../../../../test/support/pods.ts";
import { type GrpcError, UnixChannel } from "../../../ground/grpc/index.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { PodResourcesListerDefinition } from "./gen/pod-resources.ts";
import { PodResourcesListerDefinition as OldDefinition } from "./gen/pod-resources-v1alpha1.ts";
import type { PodResourcesPorts, PodResourcesSettings } from "./ports.ts";
import { servePodResources } from "./service.ts";

const gpu = "vendor.com/gpu";
const pod = testPod(
  {
    initContainers: [testContainer("init"), testContainer("side", { restartPolicy: "Always" })],
    containers: [testContainer("main"), testContainer("plain")],
  },
  { name: "p", namespace: "ns", uid: "u" },
);
const ended = testPod({ containers: [testContainer("main")] }, { name: "old", namespace: "ns", uid: "o" });

let directory: string;
let server: AsyncDisposable;
let channel: UnixChannel;
let clock: FakeClock;
const asked: string[] = [];

const ports: PodResourcesPorts = {
  activePods: () => [pod],
  allPods: () => [pod, ended],
  devicesOf: (uid, container) =>
    container === "main" && uid === "u"
      ? [
          {
            resource: gpu,
            byNode: new Map([
              [1, ["b"]],
              [-1, ["d", "c"]],
              [0, ["b"]],
            ]),
          },
        ]
      : [],
  cpusOf: (_, container) => (container === "side" ? [3, 4] : []),
  memoryOf: (_, container) => (container === "main" ? [{ type: "memory", bytes: 2 ** 40, nodes: [0, 1] }] : []),
  claimsOf: (_: IdentifiedPod, { name }) =>
    name === "plain"
      ? [{ name: "claim", namespace: "ns", devices: [{ driver: "d", pool: "p", device: "x", cdiIds: ["v/c=x"] }] }]
      : [],
  allocatable: () => ({
    devices: [{ resource: gpu, byNode: new Map([[-1, ["a"]]]) }],
    cpus: [1, 2],
    memory: [{ type: "hugepages-2Mi", bytes: 4096, nodes: [1] }],
  }),
  onRequest: (version, method) => void asked.push(`${version} ${method}`),
  onGetFailed: () => void asked.push("failed"),
};

async function serve(settings: Partial<PodResourcesSettings> = {}): Promise<void> {
  const all = { showsActiveOnly: true, answersGet: true, showsClaims: true, ...settings };
  server = await servePodResources(join(directory, "kubelet.sock"), all, ports, clock);
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-pod-resources-"));
  clock = new FakeClock();
  asked.length = 0;
  channel = new UnixChannel(join(directory, "kubelet.sock"), (_, error) => error);
});
afterEach(async () => {
  channel.close();
  await server[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const options = { operation: "test", deadline: undefined, signal: undefined };
const { fullName, methods } = PodResourcesListerDefinition;
const list = () => channel.unary(fullName, methods.list, {}, options);
const get = (podName: string) => channel.unary(fullName, methods.get, { podName, podNamespace: "ns" }, options);

test("who has what: one entry per device and NUMA node, containers that last, and no others", async () => {
  await serve();
  const { podResources } = await list();
  const entry = (id: string, node?: bigint) => ({
    resourceName: gpu,
    deviceIds: [id],
    topology: node === undefined ? undefined : { nodes: [{ ID: node }] },
  });
  const nothing = { devices: [], cpuIds: [], memory: [], dynamicResources: [] };
  const expected = {
    name: "p",
    namespace: "ns",
    containers: [
      { ...nothing, name: "side", cpuIds: [3n, 4n] },
      {
        ...nothing,
        name: "main",
        devices: [entry("c"), entry("d"), entry("b", 0n), entry("b", 1n)],
        memory: [{ memoryType: "memory", size: 2n ** 40n, topology: { nodes: [{ ID: 0n }, { ID: 1n }] } }],
      },
      {
        ...nothing,
        name: "plain",
        dynamicResources: [
          {
            claimName: "claim",
            claimNamespace: "ns",
            claimResources: [{ driverName: "d", poolName: "p", deviceName: "x", cdiDevices: [{ name: "v/c=x" }] }],
          },
        ],
      },
    ],
  };
  assert.deepEqual(podResources, [expected]);
  assert.deepEqual((await get("p")).podResources, expected);
  assert.deepEqual(asked, ["v1 list", "v1 get"]);
});

test("what could be had", async () => {
  await serve();
  assert.deepEqual(await channel.unary(fullName, methods.getAllocatableResources, {}, options), {
    devices: [{ resourceName: gpu, deviceIds: ["a"], topology: undefined }],
    cpuIds: [1n, 2n],
    memory: [{ memoryType: "hugepages-2Mi", size: 4096n, topology: { nodes: [{ ID: 1n }] } }],
  });
});

test("a pod that is not there, or has ended, is not found; where it must not be asked for, that is said", async () => {
  await serve();
  const notFound = (name: string) => (error: GrpcError) =>
    error.code === "Unknown" && error.message === `pod ${name} in namespace ns not found`;
  await assert.rejects(get("none"), notFound("none"));
  await assert.rejects(get("old"), notFound("old"));
  await server[Symbol.asyncDispose]();
  await serve({ answersGet: false });
  channel.close();
  channel = new UnixChannel(join(directory, "kubelet.sock"), (_, error) => error);
  await assert.rejects(get("p"), /PodResources API Get method disabled/);
});

test("the first version shows all pods, and devices without their place", async () => {
  await serve();
  const { podResources } = await channel.unary(OldDefinition.fullName, OldDefinition.methods.list, {}, options);
  assert.deepEqual(podResources, [
    {
      name: "p",
      namespace: "ns",
      containers: [
        { name: "main", devices: [{ resourceName: gpu, deviceIds: ["b", "c", "d"] }] },
        { name: "plain", devices: [] },
      ],
    },
    { name: "old", namespace: "ns", containers: [{ name: "main", devices: [] }] },
  ]);
});

test("the eleventh call in an instant is refused, and answered a moment later", async () => {
  await serve();
  const outcomes = await Promise.allSettled(Array.from({ length: 11 }, list));
  const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as GrpcError] : []));
  assert.deepEqual(
    refused.map(({ code, message }) => [code, message]),
    [["ResourceExhausted", "rejected by rate limit"]],
  );
  await clock.advance(10);
  await list();
});

test("a socket that an earlier run left is replaced, and none is left behind", async () => {
  await writeFile(join(directory, "kubelet.sock"), "");
  await serve();
  await list();
  await server[Symbol.asyncDispose]();
  await assert.rejects(stat(join(directory, "kubelet.sock")), { code: "ENOENT" });
  await serve();
});
