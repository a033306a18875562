import { CriError } from "../../../connections/cri/index.ts";
import { messageOf } from "../../../ground/base/index.ts";

/** An answer other than success; its message is the body. */
export class AnswerError extends Error {
  override readonly name = "AnswerError";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** What a failed call to the runtime is to the client. */
export function fromRuntime(error: unknown): AnswerError {
  if (!(error instanceof CriError)) return new AnswerError(500, messageOf(error));
  switch (error.code) {
    case "NotFound":
      return new AnswerError(404, error.rpcText);
    case "ResourceExhausted":
      return new AnswerError(429, error.rpcText, { "Retry-After": "60" });
    default:
      return new AnswerError(500, error.rpcText);
  }
}
