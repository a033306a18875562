import type { PodUid } from "./ids.ts";
import type { IdentifiedPod } from "./pod.ts";

export const podSources = ["file", "http", "api"] as const;
/** Where a desired pod comes from; also the value of the `kubernetes.io/config.source` annotation. */
export type PodSource = (typeof podSources)[number];

/**
 * What the sources ask of the registry about some pods of one source: the contract between the two.
 *
 * - ADD: not known before (may already be marked for deletion).
 * - UPDATE: spec, labels or annotations differ from what was known.
 * - DELETE: marked for graceful deletion; the pod itself stays desired until REMOVE.
 * - REMOVE: gone from its source; carries the pod as last known.
 * - RECONCILE: only the status in the source differs from what was known.
 *
 * The first SET of a source always causes at least one change, if need be an ADD without pods, so that the consumer
 * learns that the source has spoken. So does the first one that the source stands by after a provisional one: it ADDs
 * every pod again.
 */
export interface PodChange {
  readonly op: "ADD" | "UPDATE" | "DELETE" | "REMOVE" | "RECONCILE";
  readonly source: PodSource;
  readonly pods: readonly IdentifiedPod[];
  /** Given while the source can only say what it wanted last: such a list starts nothing else, and stops nothing. */
  readonly provisional?: Provisional | undefined;
}

/** A list that the source could not confirm. */
export interface Provisional {
  /** What a pod of the list has to wait for; undefined: it may go on, or be started. */
  readonly hold: (uid: PodUid) => string | undefined;
}
