import { type AgentConfig, type EvictionAmount, parseEvictionThreshold, reservedResources } from "../config/index.ts";
import { addAmounts, type ResourceAmounts, type Taint } from "../model/index.ts";

/** What the configuration says about the Node object and how it is kept. */
export interface NodeSettings {
  readonly nodeName: string;
  readonly kubeletVersion: string;
  readonly register: boolean;
  /** --node-labels, over those that every node has. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly providerId: string;
  readonly nodeIps: readonly string[];
  /** Somebody outside sets addresses and provider id, and takes the taint away that says so. */
  readonly externalCloud: boolean;
  readonly controllerAttachDetach: boolean;
  readonly port: number;
  readonly maxPods: number;
  /** 0 is no limit. */
  readonly podsPerCore: number;
  readonly localStorageIsolation: boolean;
  /** systemReserved and kubeReserved together. */
  readonly reserved: ResourceAmounts;
  /** Thresholds of hard eviction that lower what pods may use; the amount, or a share of the capacity. */
  readonly hardEviction: { readonly memory?: Threshold; readonly nodefs?: Threshold };
  readonly updateEveryMs: number;
  readonly reportEveryMs: number;
  readonly leaseSeconds: number;
}

export type Threshold = EvictionAmount;

export function nodeSettingsOf(config: AgentConfig): NodeSettings {
  const { kubelet, flags, nodeName, reportedVersion } = config;
  const { system, kube } = reservedResources(kubelet);
  const hard = flags.experimentalAllocatableIgnoreEviction ? {} : kubelet.evictionHard;
  const memory = thresholdOf(hard["memory.available"]);
  const nodefs = thresholdOf(hard["nodefs.available"]);
  return {
    nodeName,
    kubeletVersion: reportedVersion,
    register: kubelet.registerNode,
    labels: flags.nodeLabels,
    taints: kubelet.registerWithTaints,
    providerId: kubelet.providerID,
    nodeIps: flags.nodeIPs,
    externalCloud: flags.cloudProvider === "external",
    controllerAttachDetach: kubelet.enableControllerAttachDetach,
    port: kubelet.port,
    maxPods: kubelet.maxPods,
    podsPerCore: kubelet.podsPerCore,
    localStorageIsolation: kubelet.localStorageCapacityIsolation,
    reserved: addAmounts(new Map(Object.entries(system)), new Map(Object.entries(kube))),
    hardEviction: { ...(memory !== undefined && { memory }), ...(nodefs !== undefined && { nodefs }) },
    updateEveryMs: kubelet.nodeStatusUpdateFrequencyMs,
    reportEveryMs: kubelet.nodeStatusReportFrequencyMs,
    leaseSeconds: kubelet.nodeLeaseDurationSeconds,
  };
}

function thresholdOf(text: string | undefined): Threshold | undefined {
  if (text === undefined) return undefined;
  const threshold = parseEvictionThreshold(text);
  return threshold === "off" ? undefined : threshold;
}
