/** A pull as the agent tells of it. */
export interface PullAnswer {
  readonly image: string;
  readonly podUids: readonly string[];
  /** Missing while it waits for its turn. */
  readonly ageMs?: number;
  /** Missing where the runtime can't tell. */
  readonly progress?: ProgressAnswer;
}

export interface ProgressAnswer {
  readonly bytes: number;
  readonly totalBytes: number;
  readonly layers: { readonly done: number; readonly total: number };
}

/** Such as "12.3 MB of 40.0 MB (30 %), 2 of 5 layers". */
export function progressText({ bytes, totalBytes, layers }: ProgressAnswer): string {
  const percent = totalBytes === 0 ? 0 : Math.floor((bytes / totalBytes) * 100);
  return `${megabytes(bytes)} of ${megabytes(totalBytes)} (${percent} %), ${layers.done} of ${layers.total} layers`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
