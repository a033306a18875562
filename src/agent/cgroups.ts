import { once } from "node:events";
import { type CgroupLayout, findSystemd, type Machine, readPidLimit } from "../connections/host/index.ts";
import { type Clock, KeyedWorkers, type Logger, messageOf, type TaskScope } from "../ground/base/index.ts";
import { type AgentConfig, reservedResources } from "../ground/config/index.ts";
import { amountsOf, type IdentifiedPod, type PodUid } from "../ground/model/index.ts";
import {
  type CgroupDriver,
  CgroupTree,
  kernelCgroupFiles,
  limitPods,
  limitReserved,
  type NodeAllocatableSettings,
  PodCgroups,
  SliceTree,
} from "../pod/resources/index.ts";
import type { NodeContext } from "../pod/runtime/index.ts";

/** As often as the kubelet. Others may write to our files at any time, and nothing tells us. */
const healEveryMs = 60_000;
/** Between two rounds: a bus that takes connections and drops them would else cause one after the other. */
const restMs = 2_000;

export interface CgroupParts {
  readonly config: AgentConfig;
  readonly node: NodeContext;
  readonly layout: CgroupLayout;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Not asked before `keepHealing`, or before a pod wants its cgroup. */
  readonly activePods: () => readonly IdentifiedPod[];
  /** Every source has said which pods it wants, and those are in `activePods`. */
  readonly arePodsKnown: () => boolean;
}

export interface NodeCgroups {
  readonly pods: PodCgroups;
  /** Puts right what others change, now and then and whenever `wake` is called. */
  keepHealing(knownPods: KnownPods, scope: TaskScope): { readonly wake: () => void };
}

/** A driver, and what is heard of whoever else drives. */
interface DrivenCgroups {
  readonly tree: CgroupDriver;
  /** Called when all values may have been changed at once. */
  readonly onReload: (listener: () => void) => void;
  /** Makes sure that such changes are heard of. */
  readonly listen: () => Promise<void>;
}

/** Every pod there is any sign of; undefined while that cannot be told. */
type KnownPods = (signal: AbortSignal) => Promise<ReadonlySet<PodUid> | undefined>;

/** Makes the cgroups that all pods live below, and limits what they may use together. */
export async function startCgroups(parts: CgroupParts, scope: TaskScope): Promise<NodeCgroups> {
  const { node, log, clock, activePods, arePodsKnown } = parts;
  const { kubelet } = parts.config;
  const files = new CgroupTree(parts.layout, kernelCgroupFiles, clock);
  const { tree, onReload, listen } = await chooseDriver(parts, files, scope);
  const pods = new PodCgroups(
    node.cgroups,
    {
      cpuCfsQuota: kubelet.cpuCFSQuota,
      cpuPeriodUs: kubelet.cpuCFSQuotaPeriodMs * 1000,
      podPidsLimit: kubelet.podPidsLimit,
      memoryQos: node.memoryQos !== undefined,
      hugePageSizes: node.hugePageSizes,
    },
    { tree, log, activePods, arePodsKnown, hasExclusiveCpus: () => false },
  );
  if (!node.cgroups.perQos) return { pods, keepHealing: () => ({ wake: () => {} }) };
  const share = await shareOf(parts);
  try {
    await pods.createTiers();
  } catch (error) {
    // systemd may be busy or out of reach for a while. Pods that run already are to be looked after all the same.
    if (tree === files) throw error;
    log.error("Could not make the cgroups of all pods; trying again later", error);
  }
  let lastProblem: string | undefined;
  const limitAllPods = async (): Promise<void> => {
    try {
      await limitPods(tree, node.cgroups, share);
      lastProblem = undefined;
    } catch (error) {
      // Pods that already use more than the new limit must not keep the agent from managing them.
      if (messageOf(error) !== lastProblem) log.error("Could not limit what all pods together may use", error);
      lastProblem = messageOf(error);
    }
  };
  await limitAllPods();
  try {
    await limitReserved(tree, node.cgroups, share);
  } catch (error) {
    if (tree === files) throw error;
    log.error("Could not limit what is reserved for others than pods; trying again later", error);
  }
  return {
    pods,
    keepHealing(knownPods, healingScope) {
      const healer = new KeyedWorkers<"all">(healingScope, async (_, signal) => {
        await listen().catch((error: unknown) => log.warn("Cannot reach systemd; trying again later", { err: error }));
        await pods.heal();
        await limitAllPods();
        await limitReserved(tree, node.cgroups, share).catch((error: unknown) =>
          log.warn("Could not limit what is reserved for others than pods; trying again later", { err: error }),
        );
        if (arePodsKnown()) await removeOrphans(pods, knownPods, log, signal);
        await clock.sleep(restMs, signal);
      });
      const wake = (): void => healer.wake("all");
      onReload(wake);
      healingScope.spawn("cgroup healing", async (signal) => {
        for (;;) {
          await clock.sleep(healEveryMs, signal);
          wake();
        }
      });
      return { wake };
    },
  };
}

/** Slices belong to systemd, where there is one; elsewhere the driver of that name is only another way of naming. */
async function chooseDriver(parts: CgroupParts, files: CgroupTree, scope: TaskScope): Promise<DrivenCgroups> {
  const { node, clock, log, environment } = parts;
  const byHand: DrivenCgroups = { tree: files, onReload: () => {}, listen: async () => {} };
  if (node.cgroups.driver !== "systemd" || !node.cgroups.perQos) return byHand;
  const manager = await findSystemd(environment["DBUS_SYSTEM_BUS_ADDRESS"], { clock, log: log.named("systemd") });
  if (manager !== undefined) {
    scope.spawn("connection to systemd", async (signal) => {
      if (!signal.aborted) await once(signal, "abort");
      manager.close();
    });
    return {
      tree: new SliceTree(files, manager),
      onReload: (listener) => manager.onReload(listener),
      listen: () => manager.connect(),
    };
  }
  log.warn("The cgroup driver is systemd, but systemd does not run this machine; slices are made as directories");
  return byHand;
}

async function removeOrphans(pods: PodCgroups, known: KnownPods, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await pods.removeOrphans(known, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn("Could not look for cgroups of pods that are gone; trying again later", { err: error });
  }
}

async function shareOf({ config, node, machine }: CgroupParts): Promise<NodeAllocatableSettings> {
  const { kubelet } = config;
  // systemReserved and kubeReserved, as reservedSystemCPUs changes them.
  const reserved = reservedResources(kubelet);
  return {
    enforce: kubelet.enforceNodeAllocatable,
    systemReservedCgroup: kubelet.systemReservedCgroup,
    kubeReservedCgroup: kubelet.kubeReservedCgroup,
    capacity: amountsOf({
      cpu: String(machine.cpus.logical),
      memory: String(machine.memoryBytes),
      pid: String(await readPidLimit()),
    }),
    systemReserved: new Map(Object.entries(reserved.system)),
    kubeReserved: new Map(Object.entries(reserved.kube)),
    hugePageSizes: node.hugePageSizes,
  };
}
