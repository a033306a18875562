import type { StartReason } from "../../ground/model/index.ts";

/** A sandbox or container could not be started; reason and message are what users read in the pod's status. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly reason: StartReason;
  /** When trying again makes sense; undefined: by the worker's own back-off. */
  readonly nextTryAt: number | undefined;

  constructor(
    reason: StartReason,
    message: string,
    options?: { readonly nextTryAt?: number; readonly cause?: unknown },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.nextTryAt = options?.nextTryAt;
  }
}
