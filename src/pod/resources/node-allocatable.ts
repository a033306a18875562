import { messageOf } from "../../ground/base/index.ts";
import type { NodeAllocatableEnforcement } from "../../ground/config/index.ts";
import {
  type CgroupNaming,
  cgroupNamed,
  kubepodsCgroup,
  type RecordNodeEvent,
  type ResourceAmounts,
} from "../../ground/model/index.ts";
import { kubepodsValues, type NodeShare, reservedValues } from "./allocatable-values.ts";
import type { CgroupDriver } from "./cgroup-driver.ts";
import { CgroupError } from "./cgroup-tree.ts";

export interface NodeAllocatableSettings extends NodeShare {
  readonly enforce: readonly NodeAllocatableEnforcement[];
  /** As configured; must exist, and are never made. */
  readonly systemReservedCgroup: string;
  readonly kubeReservedCgroup: string;
}

/**
 * Limits what all pods together may use; to be repeated, as all values that others may change. Can fail while the pods use more than the new limit; then it is to be tried
 * again after some have been evicted.
 */
export async function limitPods(
  tree: CgroupDriver,
  naming: CgroupNaming,
  settings: NodeAllocatableSettings,
): Promise<void> {
  await tree.heal(kubepodsCgroup(naming), kubepodsValues(settings, settings.enforce.includes("pods")), "exact");
}

/** Limits the machine's and the cluster's own processes where the configuration asks for it, and tells what came of it. */
export async function limitReserved(
  tree: CgroupDriver,
  naming: CgroupNaming,
  settings: NodeAllocatableSettings,
  tell: RecordNodeEvent = () => {},
): Promise<void> {
  const parties = [
    { key: "system-reserved", cgroup: settings.systemReservedCgroup, reserved: settings.systemReserved, who: "System" },
    { key: "kube-reserved", cgroup: settings.kubeReservedCgroup, reserved: settings.kubeReserved, who: "Kube" },
  ] as const;
  for (const { key, cgroup, reserved, who } of parties) {
    const path = cgroupNamed(naming.driver, cgroup);
    const limit = async (kind: "full" | "compressible", amounts: ResourceAmounts): Promise<void> => {
      try {
        if ((await tree.presence(path)) === "missing") {
          throw new CgroupError("limit", path, new Error(`it does not exist; ${key} needs it made beforehand`));
        }
        await tree.heal(path, reservedValues(amounts, settings, kind), "exact");
      } catch (error) {
        const what = kind === "full" ? `${who} Reserved` : `${who} Reserved Compressible`;
        const message = `Failed to enforce ${what} Cgroup Limits on ${JSON.stringify(cgroup)}: ${messageOf(error)}`;
        tell({ type: "Warning", reason: "FailedNodeAllocatableEnforcement", message });
        throw error;
      }
      const message = `Updated limits on ${who.toLowerCase()} reserved cgroup ${cgroup}`;
      tell({ type: "Normal", reason: "NodeAllocatableEnforced", message });
    };
    if (settings.enforce.includes(key)) await limit("full", reserved);
    if (settings.enforce.includes(`${key}-compressible`)) await limit("compressible", reserved);
  }
}
