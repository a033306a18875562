import { messageOf } from "../../../ground/base/index.ts";

/** Docker refused a request; `message` is its own words. */
export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Docker could not be reached, broke off, took too long, or answered with what it should not. */
export class EngineUnavailable extends Error {
  override readonly name = "EngineUnavailable";

  constructor(what: string, cause?: unknown) {
    super(cause === undefined ? what : `${what}: ${messageOf(cause)}`, cause === undefined ? undefined : { cause });
  }
}

/** It was not refused; it took too long. */
export class EngineTimeout extends EngineUnavailable {}

export function isAbsent(error: unknown): boolean {
  return error instanceof EngineError && error.status === 404;
}

export function isClash(error: unknown): boolean {
  return error instanceof EngineError && error.status === 409;
}
