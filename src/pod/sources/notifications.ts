import type { IdentifiedPod, PodChange, PodSource, Provisional } from "../../ground/model/index.ts";

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
