import type { Readable } from "node:stream";
import type { JsonObject } from "../json.ts";

/** What a handler answers with. */
export type Reply =
  | { readonly type: "json"; readonly code: number; readonly body: JsonObject; readonly contentType?: string }
  | { readonly type: "text"; readonly code: number; readonly text: string }
  | { readonly type: "bytes"; readonly code: number; readonly contentType: string; readonly bytes: Buffer }
  /** What someone else answers, passed on as it comes. */
  | { readonly type: "stream"; readonly code: number; readonly contentType: string; readonly body: Readable }
  /** Events; `start` returns how to stop them. */
  | { readonly type: "watch"; start(send: (event: JsonObject) => void, end: () => void): () => void };

export function json(body: JsonObject, code = 200): Reply {
  return { type: "json", code, body };
}

export function plainText(body: string, code = 200): Reply {
  return { type: "text", code, text: body };
}
