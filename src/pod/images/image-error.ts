import type { ImageReason } from "../../ground/model/index.ts";

/** The image cannot be had now. `reason` and `message` are the waiting state of the container. */
export class ImageError extends Error {
  override readonly name = "ImageError";
  readonly reason: ImageReason;
  /** When trying again can change anything; undefined: nothing says when. Wall-clock milliseconds. */
  readonly nextTryAt: number | undefined;

  constructor(reason: ImageReason, message: string, options: { cause?: unknown; nextTryAt?: number } = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.nextTryAt = options.nextTryAt;
  }
}

/** Names the failure of a pull by the prefixes that runtimes use to say what went wrong. */
export function explainPullFailure(
  image: string,
  text: string,
): { readonly reason: ImageReason; readonly message: string } {
  for (const [reason, problem] of [
    ["RegistryUnavailable", "the registry is unavailable"],
    ["SignatureValidationFailed", "the signature validation failed"],
  ] as const) {
    if (text.startsWith(reason)) {
      return { reason, message: `image pull failed for ${image} because ${problem}${text.slice(reason.length)}` };
    }
  }
  return { reason: "ErrImagePull", message: text };
}

/** Several failures as one text: each different one once, in brackets when there is more than one. */
export function joinMessages(messages: readonly string[]): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? (distinct[0] ?? "") : `[${distinct.join(", ")}]`;
}
