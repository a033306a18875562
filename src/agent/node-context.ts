import type { Logger } from "../base/index.ts";
import { type AgentConfig, reservedResources } from "../config/index.ts";
import { type CgroupLayout, isSelinuxEnabled, type Machine } from "../host/index.ts";
import { amountsOf, type ResourceAmounts } from "../model/index.ts";
import { canControlSwap, readHugePageSizes } from "../resources/index.ts";
import {
  type AllocateIds,
  type NodeContext,
  readResolvConf,
  readThermalThrottlePaths,
  type SandboxContext,
} from "../runtime/index.ts";

/** Gathers the facts about this node that the descriptions of sandboxes and containers need. */
export async function readNodeContext(facts: {
  readonly config: AgentConfig;
  readonly machine: Machine;
  readonly cgroups: CgroupLayout;
  readonly cgroupDriver: "systemd" | "cgroupfs";
  readonly nodeIps: readonly string[];
  readonly allocateIds: AllocateIds;
  readonly log: Logger;
}): Promise<NodeContext> {
  const { config, machine, cgroups, log } = facts;
  const { kubelet, flags, gates } = config;
  const [hostDns, thermalThrottlePaths, hugePageSizes, selinuxEnabled] = await Promise.all([
    kubelet.resolvConf === "" ? undefined : readResolvConf(kubelet.resolvConf),
    readThermalThrottlePaths(),
    readHugePageSizes(),
    isSelinuxEnabled(),
  ]);
  return {
    rootDir: flags.rootDir,
    podLogsDir: kubelet.podLogsDir,
    dns: {
      clusterDns: kubelet.clusterDNS,
      clusterDomain: kubelet.clusterDomain,
      hostDns,
      nodeIps: facts.nodeIps,
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
    nodeAllocatable: allocatable(config, machine),
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

/** What pods may use: the machine less what is set aside for the system and the node's own parts. */
function allocatable(config: AgentConfig, machine: Machine): ResourceAmounts {
  const capacity = amountsOf({ cpu: String(machine.cpus.logical), memory: String(machine.memoryBytes) });
  const { system, kube } = reservedResources(config.kubelet);
  const result = new Map(capacity);
  for (const amounts of [system, kube]) {
    for (const [name, amount] of Object.entries(amounts)) {
      const left = (result.get(name) ?? 0n) - amount;
      if (result.has(name)) result.set(name, left > 0n ? left : 0n);
    }
  }
  return result;
}
