import { configSourceAnnotation, type IdentifiedPod } from "../../ground/model/index.ts";
import type { AdmissionHandler } from "./admission.ts";
import { type HostNamespaceSettings, hostNamespaceSettings } from "./host-namespace-settings.ts";

/** Pods of some sources may not use namespaces of the host. */
export function hostNamespaceHandler(environment: Readonly<Record<string, string>>): AdmissionHandler {
  const settings = hostNamespaceSettings(environment);
  return (pod) => {
    const [refusal] = hostNamespaceRefusals(pod, settings);
    return refusal === undefined
      ? { type: "admitted" }
      : { type: "rejected", reason: "HostNamespaceForbidden", message: refusal };
  };
}

/** Why this pod may not run because of where it comes from; empty when it may. */
export function hostNamespaceRefusals(pod: IdentifiedPod, settings: HostNamespaceSettings): readonly string[] {
  const source = pod.metadata.annotations?.[configSourceAnnotation] ?? "unknown";
  const { hostNetwork, hostPID, hostIPC } = pod.spec;
  const refused = (wants: boolean | undefined, what: string, allowed: readonly string[]): readonly string[] => {
    if (wants !== true || allowed.includes("*") || allowed.includes(source)) return [];
    const list = allowed.length === 0 ? "none" : allowed.join(", ");
    return [
      `pod with UID "${pod.metadata.uid}" specified ${what}, but is disallowed: its source is "${source}", allowed sources: ${list}`,
    ];
  };
  return [
    ...refused(hostNetwork, "host networking", settings.hostNetworkSources),
    ...refused(hostPID, "host PID", settings.hostPidSources),
    ...refused(hostIPC, "host ipc", settings.hostIpcSources),
  ];
}
