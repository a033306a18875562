import type { JsonObject } from "../json.ts";
import type { WatchSink } from "../rest/watch.ts";

/** What a handler answers with. */
export type Reply =
  | { readonly type: "json"; readonly code: number; readonly body: JsonObject; readonly contentType?: string }
  | { readonly type: "text"; readonly code: number; readonly text: string }
  /** A stream of events; `start` returns how to stop it. */
  | { readonly type: "watch"; start(sink: WatchSink): () => void };

export function json(body: JsonObject, code = 200): Reply {
  return { type: "json", code, body };
}

export function text(body: string, code = 200): Reply {
  return { type: "text", code, text: body };
}
