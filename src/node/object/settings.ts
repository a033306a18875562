import { type AgentConfig, capacitySettingsOf, laterGateNames } from "../../ground/config/index.ts";
import type { CapacitySettings, Taint } from "../../ground/model/index.ts";

/** What the configuration says about the Node object and how it is kept. */
export interface NodeSettings extends CapacitySettings {
  readonly nodeName: string;
  readonly kubeletVersion: string;
  readonly register: boolean;
  /** --node-labels, over those that every node has. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly providerId: string;
  /** The name was given by --hostname-override. */
  readonly isNameGiven: boolean;
  readonly nodeIps: readonly string[];
  /** Somebody outside sets addresses and provider id, and takes the taint away that says so. */
  readonly externalCloud: boolean;
  readonly controllerAttachDetach: boolean;
  /** What API servers from v1.36 on allow on this node only if it says that it can do it; in order. */
  readonly declaredFeatures: readonly string[];
  readonly port: number;
  readonly updateEveryMs: number;
  readonly reportEveryMs: number;
  readonly leaseSeconds: number;
}

export function nodeSettingsOf(config: AgentConfig): NodeSettings {
  const { kubelet, flags, nodeName, reportedVersion } = config;
  return {
    nodeName,
    kubeletVersion: reportedVersion,
    register: kubelet.registerNode,
    labels: flags.nodeLabels,
    taints: kubelet.registerWithTaints,
    providerId: kubelet.providerID,
    isNameGiven: flags.hostnameOverride !== "",
    nodeIps: flags.nodeIPs,
    externalCloud: flags.cloudProvider === "external",
    controllerAttachDetach: kubelet.enableControllerAttachDetach,
    declaredFeatures: laterGateNames.filter((gate) => config.gates.enabled(gate)),
    port: kubelet.port,
    ...capacitySettingsOf(config),
    updateEveryMs: kubelet.nodeStatusUpdateFrequencyMs,
    reportEveryMs: kubelet.nodeStatusReportFrequencyMs,
    leaseSeconds: kubelet.nodeLeaseDurationSeconds,
  };
}
