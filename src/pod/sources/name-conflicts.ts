import { type IdentifiedPod, type Problem, uidOf } from "../../ground/model/index.ts";

/** A file that wants a pod. */
export interface Candidate {
  readonly path: string;
  readonly pod: IdentifiedPod;
  /** The pod that runs from this file now, or, after a restart of the agent, most likely does. */
  readonly running: IdentifiedPod | undefined;
}

export interface Resolution {
  /** The pod that each file gets. */
  readonly chosen: ReadonlyMap<string, IdentifiedPod>;
  /** Why a file does not get the pod it wants. */
  readonly refused: ReadonlyMap<string, Problem>;
}

/**
 * Decides between files that describe a pod of the same name or uid. What runs stays: a copy of a manifest put beside
 * it does no harm, and a file edited into such a conflict keeps the pod it had. Among new files the last by name wins.
 */
export function resolveConflicts(candidates: readonly Candidate[]): Resolution {
  const owners = new Map<string, string>();
  const chosen = new Map<string, IdentifiedPod>();
  const refused = new Map<string, Problem>();

  const claim = (path: string, pod: IdentifiedPod): Problem | undefined => {
    const claims = claimsOf(pod);
    const taken = claims.find(({ key }) => owners.has(key));
    if (taken !== undefined) {
      const message = `Duplicate value: "${taken.value}": the pod is already described by ${owners.get(taken.key)}`;
      return { severity: "error", field: taken.field, message };
    }
    for (const { key } of claims) owners.set(key, path);
    chosen.set(path, pod);
    return undefined;
  };

  for (const { path, pod, running } of [...candidates].reverse().sort((a, b) => rank(a) - rank(b))) {
    const problem = claim(path, pod);
    if (problem === undefined) continue;
    refused.set(path, problem);
    if (running !== undefined && running !== pod) claim(path, running);
  }
  return { chosen, refused };
}

/** Those who keep the name they have come first, then those who change it, then newcomers. */
function rank({ pod, running }: Candidate): number {
  if (running === undefined) return 2;
  const isSameName =
    running.metadata.name === pod.metadata.name && running.metadata.namespace === pod.metadata.namespace;
  return isSameName ? 0 : 1;
}

function claimsOf(pod: IdentifiedPod) {
  const { name, namespace } = pod.metadata;
  return [
    { key: `name ${namespace}/${name}`, field: "metadata.name", value: name },
    { key: `uid ${uidOf(pod)}`, field: "metadata.uid", value: uidOf(pod) },
  ] as const;
}
