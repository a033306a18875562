import type { NodeFacts, NodeSettings, RuntimeFacts } from "../../src/node/object/index.ts";

export const readyRuntime: RuntimeFacts = {
  identity: { name: "containerd", version: "1.7.2" },
  problems: [],
  networkProblem: undefined,
  handlers: [{ name: "", features: { recursiveReadOnlyMounts: true, userNamespaces: false } }],
  features: { supplementalGroupsPolicy: true },
};

/** A healthy machine of 8 cores and 16 GB whose facts a test may change. */
export class TestFacts implements NodeFacts {
  machine = {
    cpus: { logical: 8, physicalCores: 4, sockets: 1 },
    memoryBytes: 16_393_244 * 1024,
    swapBytes: 0,
    machineId: "machine-1",
    systemUuid: "uuid-1",
    bootId: "boot-1",
    kernelVersion: "6.1.0",
    osImage: "Debian GNU/Linux 12 (bookworm)",
    architecture: "amd64",
  };
  hugePages = new Map<bigint, bigint>();
  rootBytes: bigint | undefined = 100_000_000_000n;
  ownIps = new Set(["10.0.0.5", "fd00::5", "127.0.0.1"]);
  names: Readonly<Record<string, readonly string[]>> = {};
  defaults: { 4?: string; 6?: string } = { 4: "10.0.0.5" };
  runtimeFacts: RuntimeFacts = readyRuntime;
  imageList: readonly { names: string[]; sizeBytes: number }[] | Error = [{ names: ["busybox:1"], sizeBytes: 5 }];
  underPressure = { memory: false, disk: false, pid: false };
  volumes: readonly string[] | undefined;
  deviceFacts = {
    capacity: new Map<string, number>(),
    allocatable: new Map<string, number>(),
    removed: [] as string[],
    hasCheckpoint: true,
  };
  shutdown: string | undefined;
  shortcoming: string | undefined;
  cloud: NodeFacts["cloud"];

  readonly network = {
    ownAddresses: () => this.ownIps,
    lookup: async (host: string) => this.names[host] ?? [],
    defaultAddress: async (family: 4 | 6) => this.defaults[family],
  };
  readonly rootFilesystemBytes = async (): Promise<bigint | undefined> => this.rootBytes;
  readonly runtime = (): RuntimeFacts => this.runtimeFacts;
  readonly images = async () => {
    if (this.imageList instanceof Error) throw this.imageList;
    return this.imageList;
  };
  readonly pressure = () => this.underPressure;
  readonly volumesInUse = () => this.volumes;
  readonly devices = () => this.deviceFacts;
  readonly shutdownProblem = () => this.shutdown;
}

export const testNodeSettings: NodeSettings = {
  isNameGiven: false,
  nodeName: "node-1",
  kubeletVersion: "v1.34.11",
  register: true,
  labels: {},
  taints: [],
  providerId: "",
  nodeIps: [],
  externalCloud: false,
  controllerAttachDetach: true,
  declaredFeatures: [],
  port: 10_250,
  maxPods: 110,
  podsPerCore: 0,
  localStorageIsolation: true,
  reserved: new Map(),
  hardEviction: {},
  updateEveryMs: 10_000,
  reportEveryMs: 300_000,
  leaseSeconds: 40,
};
