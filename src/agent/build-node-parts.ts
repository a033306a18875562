import { NodePressure } from "../node/eviction/index.ts";
import type { NodeKnowledge } from "../node/object/index.ts";
import { memoryForPods, NodeResources, nodeShareOf } from "../pod/resources/index.ts";
import {
  type DnsSettings,
  defaultUserIdPool,
  hostDnsReader,
  type NodeContext,
  NodeIps,
  UserIds,
} from "../pod/runtime/index.ts";
import type { DeviceParts } from "./build-devices.ts";
import type { Foundation } from "./foundation.ts";

/** Port: the Node that pods are judged by, where there is a cluster. */
export interface JudgedBy {
  readonly knowledge: NodeKnowledge | undefined;
  onChange(listener: () => void): unknown;
}

/** What pods are told of the node they run on, as it is at the moment of asking. */
export interface NodeParts {
  readonly context: NodeContext;
  readonly resources: NodeResources;
  readonly ips: NodeIps;
  readonly userIds: UserIds;
  readonly pressure: NodePressure;
  readonly readHostDns: () => Promise<DnsSettings["hostDns"]>;
  start(): Promise<void>;
}

export function buildNodeParts(
  base: Foundation,
  { known, devices }: { readonly known: JudgedBy | undefined; readonly devices: DeviceParts },
): NodeParts {
  const { config, host, log, clock, wakes, rootDir, podsDir, scope } = base;
  const { kubelet, flags } = config;
  const { machine, hugePages } = host.facts;
  const userIds = new UserIds(podsDir, defaultUserIdPool(kubelet.userNamespaces?.idsPerPod));
  const resources = new NodeResources(
    config,
    { machine, hugePages },
    {
      rootFilesystemBytes: () => host.filesystemBytes(rootDir),
      present: () => known?.knowledge?.node.status,
      devices: () => devices.manager.admissibleAmounts(),
    },
  );
  const ips = new NodeIps({ clock, log: log.named("node"), find: () => host.addresses(flags.nodeIPs) });
  known?.onChange(() => ips.learn(known.knowledge));
  ips.onChange(wakes.allPods.tell);
  wakes.gone.on((uid) => userIds.release(uid));
  const pressure = new NodePressure();
  pressure.onChange(wakes.node.tell);
  pressure.onChange(wakes.decisions.tell);
  return {
    context: nodeContext(base, { resources, ips, userIds }),
    resources,
    ips,
    userIds,
    pressure,
    readHostDns: hostDnsReader(() => host.resolvConf(kubelet.resolvConf)),
    async start() {
      for (const problem of await userIds.restore()) {
        log.error("No new pod can have a user namespace of its own until another pod is gone", new Error(problem));
      }
      await resources.rootFilesystemBytes().catch(() => undefined);
      await ips.start(scope);
    },
  };
}

/** The facts about this node that the descriptions of sandboxes and containers need. */
function nodeContext(
  base: Foundation,
  { resources, ips, userIds }: Pick<NodeParts, "resources" | "ips" | "userIds">,
): NodeContext {
  const { config, host, link, log } = base;
  const { kubelet, flags, gates } = config;
  const { machine, cgroups, hugePageSizes, selinuxEnabled, thermalThrottlePaths, canControlSwap } = host.facts;
  return {
    rootDir: flags.rootDir,
    podLogsDir: kubelet.podLogsDir,
    // Whoever copies the context for a pod copies what is true at that moment.
    get dns() {
      const { clusterDNS: clusterDns, clusterDomain } = kubelet;
      return { clusterDns, clusterDomain, nodeIps: ips.current, hostDns: undefined };
    },
    get cgroups() {
      return { driver: link.runtime.cgroupDriver, root: kubelet.cgroupRoot, perQos: kubelet.cgroupsPerQOS };
    },
    cgroupVersion: cgroups.version,
    cpuPeriodUs: kubelet.cpuCFSQuota ? kubelet.cpuCFSQuotaPeriodMs * 1000 : undefined,
    memoryCapacityBytes: BigInt(machine.memoryBytes),
    swap: {
      controllable: canControlSwap,
      behavior: kubelet.memorySwap.swapBehavior === "LimitedSwap" ? "LimitedSwap" : "NoSwap",
      capacityBytes: BigInt(machine.swapBytes),
    },
    singleProcessOomKill: kubelet.singleProcessOOMKill ?? cgroups.version === 1,
    hugePageSizes,
    memoryQos: gates.enabled("MemoryQoS")
      ? {
          throttlingFactor: kubelet.memoryThrottlingFactor,
          pageSizeBytes: 4096,
          podsMemoryBytes: memoryForPods(nodeShareOf(config, host.facts)),
        }
      : undefined,
    get nodeAllocatable() {
      return resources.allocatable();
    },
    seccompDefault: kubelet.seccompDefault,
    selinuxEnabled,
    thermalThrottlePaths,
    gates: {
      hostnameOverride: gates.enabled("HostnameOverride"),
      containerStopSignals: gates.enabled("ContainerStopSignals"),
      envFiles: gates.enabled("EnvFiles"),
    },
    allocateIds: (pod) => userIds.allocate(pod),
    log,
  };
}
