import type { AdmissionHandler } from "./admission.ts";
import { type HostNamespaceSettings, hostNamespaceRefusals, parsePodSources } from "./host-namespaces.ts";

const variables = {
  hostNetworkSources: "NODELET_HOST_NETWORK_SOURCES",
  hostPidSources: "NODELET_HOST_PID_SOURCES",
  hostIpcSources: "NODELET_HOST_IPC_SOURCES",
} as const;

/**
 * Which sources' pods may use namespaces of the host: `file,http,api` or `*` in the agent's environment, since the
 * kubelet's configuration has no place for it any more. Not set means all.
 */
export function hostNamespaceHandler(environment: Readonly<Record<string, string>>): AdmissionHandler {
  const read = (variable: string): HostNamespaceSettings["hostNetworkSources"] => {
    const text = environment[variable];
    if (text === undefined) return ["*"];
    try {
      return parsePodSources(
        text
          .split(",")
          .map((name) => name.trim())
          .filter((name) => name !== ""),
      );
    } catch (error) {
      throw new Error(`the environment variable ${variable} is ${JSON.stringify(text)}`, { cause: error });
    }
  };
  const settings: HostNamespaceSettings = {
    hostNetworkSources: read(variables.hostNetworkSources),
    hostPidSources: read(variables.hostPidSources),
    hostIpcSources: read(variables.hostIpcSources),
  };
  return (pod) => {
    const [refusal] = hostNamespaceRefusals(pod, settings);
    return refusal === undefined
      ? { type: "admitted" }
      : { type: "rejected", reason: "HostNamespaceForbidden", message: refusal };
  };
}
