import type { IdentifiedPod, PodUid } from "../../ground/model/index.ts";

export const podSources = ["file", "http", "api"] as const;
/** Where a desired pod comes from; also the value of the `kubernetes.io/config.source` annotation. */
export type PodSource = (typeof podSources)[number];

/**
 * What a consumer of the mux must do about some pods of one source.
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

/** Every desired pod of every source; only sent in the snapshot modes. */
export interface PodSnapshot {
  readonly op: "SET";
  readonly source: PodSource;
  readonly pods: readonly IdentifiedPod[];
  readonly provisional?: Provisional | undefined;
}

export type PodNotification = PodChange | PodSnapshot;

/**
 * How the mux announces changes.
 *
 * - incremental: PodChange only, in the order REMOVE, ADD, UPDATE, DELETE, RECONCILE.
 * - snapshot-and-updates: a snapshot when pods come or go, UPDATE and DELETE as changes.
 * - snapshot: a snapshot for any change.
 */
export type NotificationMode = "incremental" | "snapshot-and-updates" | "snapshot";

/** What each mode can send: the incremental mode never sends snapshots. */
export type NotificationOf<Mode extends NotificationMode> = Mode extends "incremental" ? PodChange : PodNotification;
