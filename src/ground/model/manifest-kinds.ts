import type { ConfigMap, Pod, PodList, Secret } from "./kube/gen/types.ts";
import type { Position, Problem } from "./problem.ts";

/** The kinds of objects that may stand in a manifest. */
export interface ManifestKinds {
  readonly Pod: Pod;
  readonly PodList: PodList;
  readonly ConfigMap: ConfigMap;
  readonly Secret: Secret;
}

export interface DecodedManifest<Kind extends keyof ManifestKinds> {
  /** Deeply frozen; undefined when any problem is an error. */
  readonly object: ManifestKinds[Kind] | undefined;
  readonly problems: readonly Problem[];
  /** Where a field such as `spec.containers[0].image` stands in the text, or the nearest thing around it. */
  locate(field: string): Position | undefined;
}

/** The problem with its place in the text, unless it has one or none is known. */
export function locateProblem(problem: Problem, locate: (field: string) => Position | undefined): Problem {
  if (problem.position !== undefined || problem.field === "") return problem;
  const position = locate(problem.field);
  return position === undefined ? problem : { ...problem, position };
}
