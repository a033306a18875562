import { type PodSource, podSources } from "../../ground/model/index.ts";

/** `*` stands for every source. */
export interface HostNamespaceSettings {
  readonly hostNetworkSources: readonly (PodSource | "*")[];
  readonly hostPidSources: readonly (PodSource | "*")[];
  readonly hostIpcSources: readonly (PodSource | "*")[];
}

const variables = {
  hostNetworkSources: "NODELET_HOST_NETWORK_SOURCES",
  hostPidSources: "NODELET_HOST_PID_SOURCES",
  hostIpcSources: "NODELET_HOST_IPC_SOURCES",
} as const;

/**
 * Which sources' pods may use namespaces of the host: `file,http,api` or `*` in the agent's environment, since the
 * kubelet's configuration has no place for it any more. Not set means all.
 */
export function hostNamespaceSettings(environment: Readonly<Record<string, string>>): HostNamespaceSettings {
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
  return {
    hostNetworkSources: read(variables.hostNetworkSources),
    hostPidSources: read(variables.hostPidSources),
    hostIpcSources: read(variables.hostIpcSources),
  };
}

function parsePodSources(names: readonly string[]): readonly (PodSource | "*")[] {
  const known = [...podSources, "*" as const];
  return names.map((name) => {
    const found = known.find((source) => source === name);
    if (found !== undefined) return found;
    throw new Error(`unknown pod source "${name}"; wanted one of ${known.map((each) => `"${each}"`).join(", ")}`);
  });
}
