import { type CgroupLayout, isSelinuxEnabled, type Machine, readHugePageSizes } from "../connections/host/index.ts";
import { type Logger, messageOf } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { ResourceAmounts } from "../ground/model/index.ts";
import { canControlSwap } from "../pod/resources/index.ts";
import {
  type AllocateIds,
  type NodeContext,
  type ResolvConf,
  readResolvConf,
  readThermalThrottlePaths,
  type SandboxContext,
} from "../pod/runtime/index.ts";

/** Gathers the facts about this node that the descriptions of sandboxes and containers need. */
export async function readNodeContext(facts: {
  readonly config: AgentConfig;
  readonly machine: Machine;
  readonly cgroups: CgroupLayout;
  readonly cgroupDriver: "systemd" | "cgroupfs";
  /** The present ones. */
  readonly nodeIps: () => readonly string[];
  readonly allocatable: () => ResourceAmounts;
  readonly allocateIds: AllocateIds;
  readonly log: Logger;
}): Promise<NodeContext> {
  const { config, machine, cgroups, log } = facts;
  const { kubelet, flags, gates } = config;
  const [thermalThrottlePaths, hugePageSizes, selinuxEnabled] = await Promise.all([
    readThermalThrottlePaths(),
    readHugePageSizes(),
    isSelinuxEnabled(),
  ]);
  return {
    rootDir: flags.rootDir,
    podLogsDir: kubelet.podLogsDir,
    // Whoever copies the context for a pod copies what is true at that moment.
    get dns() {
      const { clusterDNS: clusterDns, clusterDomain } = kubelet;
      return { clusterDns, clusterDomain, nodeIps: facts.nodeIps(), hostDns: undefined };
    },
    cgroups: {
      driver: facts.cgroupDriver,
      root: kubelet.cgroupRoot,
      perQos: kubelet.cgroupsPerQOS,
    },
    cgroupVersion: cgroups.version,
    cpuPeriodUs: kubelet.cpuCFSQuota ? kubelet.cpuCFSQuotaPeriodMs * 1000 : undefined,
    memoryCapacityBytes: BigInt(machine.memoryBytes),
    swap: {
      controllable: await canControlSwap(cgroups),
      behavior: kubelet.memorySwap.swapBehavior === "LimitedSwap" ? "LimitedSwap" : "NoSwap",
      capacityBytes: BigInt(machine.swapBytes),
    },
    singleProcessOomKill: kubelet.singleProcessOOMKill ?? cgroups.version === 1,
    hugePageSizes,
    memoryQos: gates.enabled("MemoryQoS")
      ? { throttlingFactor: kubelet.memoryThrottlingFactor, pageSizeBytes: 4096 }
      : undefined,
    get nodeAllocatable() {
      return facts.allocatable();
    },
    seccompDefault: kubelet.seccompDefault,
    selinuxEnabled,
    thermalThrottlePaths,
    gates: {
      hostnameOverride: gates.enabled("HostnameOverride"),
      containerStopSignals: gates.enabled("ContainerStopSignals"),
      envFiles: gates.enabled("EnvFiles"),
    },
    allocateIds: facts.allocateIds,
    log,
  };
}

/** The context of a sandbox that is run by the named handler of the runtime. */
export function sandboxContextOf(
  node: NodeContext,
  handlers: readonly {
    readonly name: string;
    readonly features?: { readonly recursiveReadOnlyMounts: boolean; readonly userNamespaces: boolean } | undefined;
  }[],
  handlerName: string,
): SandboxContext {
  const handler = handlers.find(({ name }) => name === handlerName);
  return {
    ...node,
    runtimeHandler: {
      name: handlerName,
      recursiveReadOnlyMounts: handler?.features?.recursiveReadOnlyMounts ?? false,
      userNamespaces: handler?.features?.userNamespaces ?? false,
    },
    volumeGroups: [],
    podHasExclusiveCpus: false,
  };
}

/**
 * The node's resolver settings, read for each sandbox: they change with the network (DHCP, VPN), and the file may come
 * later than the agent. While it can't be read, pods wait; the agent does not.
 */
export function hostDnsReader(path: string): () => Promise<ResolvConf | undefined> {
  return async () => {
    try {
      return await readResolvConf(path);
    } catch (error) {
      throw new Error(`cannot read the node's resolver settings (resolvConf): ${messageOf(error)}`, { cause: error });
    }
  };
}
