import { CpuSet } from "../../ground/base/index.ts";
import {
  type AgentConfig,
  capacitySettingsOf,
  type KubeletConfiguration,
  parseBool,
  parseInteger,
  reservedResources,
} from "../../ground/config/index.ts";
import { amountsOf, milliUnits, type ResourceAmounts, withheldFrom } from "../../ground/model/index.ts";
import type { CpuOptions } from "./cpu/cpu-settings.ts";
import type { AlignmentSettings } from "./topology/alignment.ts";

export interface PlacementSettings {
  /** Undefined: the policy is "none". */
  readonly cpu:
    | {
        readonly options: CpuOptions;
        /** By number; none: the agent chooses `reservedCount` of them. */
        readonly reserved: CpuSet;
        readonly reservedCount: number;
        /** Containers with CPUs of their own need no quota. */
        readonly liftsQuota: boolean;
      }
    | undefined;
  /** Undefined: the policy is "None". */
  readonly memory:
    | { readonly reserved: KubeletConfiguration["reservedMemory"]; readonly withheld: ResourceAmounts }
    | undefined;
  readonly alignment: AlignmentSettings & {
    /** With more NUMA nodes the agent refuses to align. */
    readonly mostNodes: number;
  };
}

export function placementSettingsOf(config: AgentConfig, memoryBytes: number): PlacementSettings {
  const { kubelet, gates } = config;
  const { system, kube, cpus } = reservedResources(kubelet);
  const withheld = withheldFrom(amountsOf({ memory: String(memoryBytes) }), capacitySettingsOf(config));
  const topology = kubelet.topologyManagerPolicyOptions;
  return {
    cpu:
      kubelet.cpuManagerPolicy === "none"
        ? undefined
        : {
            options: cpuOptionsOf(kubelet.cpuManagerPolicyOptions),
            reserved: CpuSet.of(cpus),
            reservedCount: Math.ceil(Number(milliUnits((system["cpu"] ?? 0n) + (kube["cpu"] ?? 0n))) / 1000),
            liftsQuota: gates.enabled("DisableCPUQuotaWithExclusiveCPUs"),
          },
    memory: kubelet.memoryManagerPolicy === "None" ? undefined : { reserved: kubelet.reservedMemory, withheld },
    alignment: {
      policy: kubelet.topologyManagerPolicy,
      scope: kubelet.topologyManagerScope,
      prefersClosest: parseBool(topology["prefer-closest-numa-nodes"] ?? "false"),
      mostNodes: parseInteger(topology["max-allowable-numa-nodes"] ?? "8", 64),
    },
  };
}

function cpuOptionsOf(options: Readonly<Record<string, string>>): CpuOptions {
  const isOn = (name: string): boolean => parseBool(options[name] ?? "false");
  return {
    wholeCoresOnly: isOn("full-pcpus-only"),
    acrossNodes: isOn("distribute-cpus-across-numa"),
    bySocket: isOn("align-by-socket"),
    acrossCores: isOn("distribute-cpus-across-cores"),
    strictReservation: isOn("strict-cpu-reservation"),
    byCache: isOn("prefer-align-cpus-by-uncorecache"),
  };
}
