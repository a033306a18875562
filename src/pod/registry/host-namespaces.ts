import { configSourceAnnotation, type IdentifiedPod, type PodSource, podSources } from "../../ground/model/index.ts";

/** Which sources' pods may use namespaces of the host. `*` stands for every source. */
export interface HostNamespaceSettings {
  readonly hostNetworkSources: readonly (PodSource | "*")[];
  readonly hostPidSources: readonly (PodSource | "*")[];
  readonly hostIpcSources: readonly (PodSource | "*")[];
}

export const allHostNamespaceSources: HostNamespaceSettings = Object.freeze({
  hostNetworkSources: Object.freeze(["*"] as const),
  hostPidSources: Object.freeze(["*"] as const),
  hostIpcSources: Object.freeze(["*"] as const),
});

/** A setting names a source that does not exist. */
export class UnknownPodSourceError extends Error {
  override readonly name = "UnknownPodSourceError";
  readonly found: string;
  constructor(found: string) {
    super(`unknown pod source "${found}"; wanted one of ${[...podSources, "*"].map((name) => `"${name}"`).join(", ")}`);
    this.found = found;
  }
}

/** Reads a list such as `["file", "*"]` from settings; throws UnknownPodSourceError. */
export function parsePodSources(names: readonly string[]): readonly (PodSource | "*")[] {
  return names.map((name) => {
    const known = [...podSources, "*" as const].find((source) => source === name);
    if (known === undefined) throw new UnknownPodSourceError(name);
    return known;
  });
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
