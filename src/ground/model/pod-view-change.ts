import type { Pod } from "./kube/gen/types.ts";

/** A change of a pod as watchers are told of it, over the wire too. */
export interface PodViewChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Pod;
}
