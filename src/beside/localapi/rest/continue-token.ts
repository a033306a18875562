import { isObject } from "../json.ts";
import { badRequest } from "../status-error.ts";

/** Where the next page begins, and at which revision; without one the present state is shown. */
export interface ContinueToken {
  readonly after: string;
  readonly revision?: number;
}

export function continueToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}

export function readContinueToken(text: string): ContinueToken {
  const parsed = parse(text);
  const hasRevision = isObject(parsed) && parsed["revision"] !== undefined;
  const isWhole = isObject(parsed) && (!hasRevision || Number.isSafeInteger(parsed["revision"]));
  if (!isWhole || typeof parsed["after"] !== "string") {
    throw badRequest(`continue key is not valid: ${text}`);
  }
  const { after, revision } = parsed;
  return { after, ...(typeof revision === "number" && { revision }) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    return undefined;
  }
}
