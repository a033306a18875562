// Made-up pods and contexts for the tests of this folder.
import { silentLogger } from "../../src/ground/base/index.ts";
import { amountsOf, type Container, type IdentifiedPod } from "../../src/ground/model/index.ts";
import { anywhere, type ContainerContext, noDeviceGrants } from "../../src/pod/runtime/mapping/context.ts";

const gibibyte = 1n << 30n;

export function examplePod(spec: Partial<IdentifiedPod["spec"]> = {}): IdentifiedPod {
  return {
    metadata: { name: "web", namespace: "shop", uid: "u-1" },
    spec: { containers: [{ name: "app", image: "app:1" }], enableServiceLinks: true, securityContext: {}, ...spec },
  };
}

export function exampleContainer(fields: Partial<Container> = {}): Container {
  return { name: "app", image: "app:1", ...fields };
}

export function exampleContext(changes: Partial<ContainerContext> = {}): ContainerContext {
  return {
    rootDir: "/var/lib/kubelet",
    podLogsDir: "/var/log/pods",
    dns: {
      clusterDns: ["10.96.0.10"],
      clusterDomain: "cluster.local",
      hostDns: { nameservers: ["192.0.2.1"], searches: ["example.net"], options: ["timeout:2"] },
      nodeIps: ["10.0.0.1"],
    },
    cgroups: { driver: "cgroupfs", root: "", perQos: true },
    cgroupVersion: 1,
    cpuPeriodUs: 100_000,
    memoryCapacityBytes: 16n * gibibyte,
    swap: { controllable: false, behavior: "NoSwap", capacityBytes: 4n * gibibyte },
    singleProcessOomKill: true,
    hugePageSizes: [],
    memoryQos: undefined,
    nodeAllocatable: amountsOf({ cpu: "4", memory: "15Gi" }),
    seccompDefault: false,
    selinuxEnabled: false,
    thermalThrottlePaths: [],
    gates: { hostnameOverride: false, containerStopSignals: false, envFiles: false },
    allocateIds: async () => ({ firstHostId: 131_072, length: 65_536 }),
    log: silentLogger,
    runtimeHandler: { name: "", recursiveReadOnlyMounts: false, userNamespaces: false },
    volumeGroups: [],
    podHasExclusiveCpus: false,
    podIps: ["10.1.0.2"],
    volumes: new Map(),
    services: { state: "none" },
    readConfigMap: undefined,
    readSecret: undefined,
    readVolumeFile: async (volumePath, path) => {
      throw new Error(`no file ${path} in ${volumePath}`);
    },
    restartCount: 0,
    image: { ref: "sha256:app" },
    placement: anywhere,
    devices: noDeviceGrants,
    subPaths: {
      create: async () => {},
      prepare: async ({ volumePath, subPath }) => `${volumePath}/safe/${subPath}`,
    },
    containerIdOf: () => undefined,
    ...changes,
  };
}
