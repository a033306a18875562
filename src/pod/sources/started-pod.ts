/** A pod that the runtime has a sandbox of, whichever agent made it. */
export interface StartedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** file, http or api; empty when whoever made it did not say. */
  readonly source: string;
  readonly startedAtMs: number;
  /** The sandbox is ready, or one of its containers runs. */
  readonly isLive: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** Hash of each of its containers, by name. */
  readonly containerHashes: ReadonlyMap<string, string>;
}
