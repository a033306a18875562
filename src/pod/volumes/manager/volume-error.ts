/** Volumes of a pod that can't be had now; the message is what users read after "Unable to attach or mount volumes: ". */
export class VolumeError extends Error {
  override readonly name = "VolumeError";
  /** True when events about the single volumes say it already. */
  readonly isAnnounced: boolean;
  /** When the next try is due; it needs no help from outside. */
  readonly nextTryAt: number | undefined;

  constructor(
    message: string,
    options: { readonly isAnnounced: boolean; readonly nextTryAt: number | undefined; readonly cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.isAnnounced = options.isAnnounced;
    this.nextTryAt = options.nextTryAt;
  }
}
