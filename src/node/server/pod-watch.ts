import type { ServerResponse } from "node:http";
import type { PodViewChange } from "../../ground/model/index.ts";
import type { LocalViews } from "./ports.ts";

/**
 * Sends every pod and then every change as one JSON object per line, until the client leaves. While the client is
 * slow, changes of one pod merge: what waits never exceeds one line per pod.
 */
export function streamPods(views: Pick<LocalViews, "pods" | "watchPods">, response: ServerResponse): void {
  const waiting = new WaitingChanges();
  let canWrite = true;
  const send = (): void => {
    while (canWrite) {
      const change = waiting.take();
      if (change === undefined) return;
      const object = { kind: "Pod", apiVersion: "v1", ...change.object };
      canWrite = response.write(`${JSON.stringify({ type: change.type, object })}\n`);
    }
  };
  response.on("drain", () => {
    canWrite = true;
    send();
  });
  response.writeHead(200, { "Content-Type": "application/json", "X-Content-Type-Options": "nosniff" });
  response.flushHeaders();
  // Listen before reading, so that no change falls between; one that arrives twice merges.
  const stop = views.watchPods((change) => {
    waiting.add(change);
    send();
  });
  response.on("close", stop);
  for (const object of views.pods()) waiting.add({ type: "ADDED", object });
  send();
}

/** Changes not sent yet, at most one per pod, in order of their first. */
export class WaitingChanges {
  readonly #changes = new Map<string, PodViewChange>();

  add(change: PodViewChange): void {
    const key = change.object.metadata?.uid ?? "";
    const before = this.#changes.get(key);
    const merged = before === undefined ? change : merge(before, change);
    if (merged === undefined) this.#changes.delete(key);
    else this.#changes.set(key, merged);
  }

  take(): PodViewChange | undefined {
    for (const [key, change] of this.#changes) {
      this.#changes.delete(key);
      return change;
    }
    return undefined;
  }
}

/** What the client has to hear instead of both; undefined when the pod came and went unseen. */
function merge(before: PodViewChange, after: PodViewChange): PodViewChange | undefined {
  if (before.type === "ADDED") return after.type === "DELETED" ? undefined : { ...after, type: "ADDED" };
  if (before.type === "DELETED" && after.type !== "DELETED") return { ...after, type: "MODIFIED" };
  return after;
}
