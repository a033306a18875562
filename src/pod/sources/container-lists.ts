import type { IdentifiedPod } from "../../ground/model/index.ts";

const lists = ["containers", "initContainers", "ephemeralContainers"] as const;

/**
 * The pod with lists of containers that are lists of objects, whatever came in: what is none lists nothing. No API server
 * stores such a pod, but one that can't be read can't be ended either, and every later part would have to think of it.
 */
export function withContainerLists(pod: IdentifiedPod): IdentifiedPod {
  if (lists.every((list) => isList(pod.spec[list], list === "containers"))) return pod;
  const spec: Record<string, unknown> = { ...pod.spec };
  for (const list of lists) {
    const found = spec[list];
    if (Array.isArray(found)) spec[list] = found.filter(isObject);
    else if (list === "containers") spec[list] = [];
    else delete spec[list];
  }
  return { ...pod, spec: spec as unknown as IdentifiedPod["spec"] };
}

function isList(value: unknown, isRequired: boolean): boolean {
  return value === undefined ? !isRequired : Array.isArray(value) && value.every(isObject);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
