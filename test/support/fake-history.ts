import { Readable } from "node:stream";
import {
  ApiError,
  type HttpResponse,
  type KubeObject,
  type ListOptions,
  type ObjectList,
  type WatchOptions,
} from "../../src/connections/kube/index.ts";
import type { ConfigMap } from "../../src/ground/model/index.ts";

interface HistoryEvent {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: ConfigMap;
}

/** What the server does with the next requests. */
export type Mood =
  | { readonly type: "well" }
  /** Connections are refused. */
  | { readonly type: "gone" }
  | { readonly type: "error"; readonly code: number; readonly retryAfterMs?: number }
  /** Requests are accepted and never answered. */
  | { readonly type: "mute" };

/** An API server's objects with their history, in memory: lists in pages, watches, forgets, and misbehaves on demand. */
export class FakeHistory {
  mood: Mood = { type: "well" };
  sendsBookmarks = true;
  /** When each request came, by the clock that was given. */
  readonly lists: number[] = [];
  readonly watches: number[] = [];
  readonly #now: () => number;
  #version = 10;
  #oldest = 0;
  #uids = 0;
  readonly #objects = new Map<string, ConfigMap>();
  #events: HistoryEvent[] = [];
  readonly #open = new Set<OpenWatch>();
  #pageVersions = new Map<string, { readonly version: number; readonly items: readonly ConfigMap[] }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  get openWatches(): number {
    return this.#open.size;
  }

  state(): readonly ConfigMap[] {
    return [...this.#objects.values()].sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  }

  put(name: string, data: string): void {
    const known = this.#objects.get(name);
    const uid = known?.metadata?.uid ?? `uid-${++this.#uids}`;
    this.#record(known === undefined ? "ADDED" : "MODIFIED", {
      metadata: {
        namespace: "ns",
        name,
        uid,
        resourceVersion: String(this.#version + 1),
        managedFields: [{ manager: "x" }],
      },
      data: { data },
    });
  }

  remove(name: string): void {
    const known = this.#objects.get(name);
    if (known === undefined) return;
    this.#record("DELETED", { ...known, metadata: { ...known.metadata, resourceVersion: String(this.#version + 1) } });
  }

  /** Forgets the history up to now; lists in progress lose their next pages. */
  compact(): void {
    this.#oldest = this.#version;
    this.#events = [];
    this.#pageVersions.clear();
  }

  /** The server is restored from a backup: its versions begin anew, lower than what clients have seen. */
  setBack(): void {
    this.#version = 5;
    this.#oldest = 0;
    this.#events = [];
    for (const [name, object] of this.#objects) {
      this.#objects.set(name, {
        ...object,
        metadata: { ...object.metadata, resourceVersion: String(++this.#version) },
      });
    }
  }

  bookmark(): void {
    if (!this.sendsBookmarks) return;
    for (const watch of this.#open) {
      watch.send({
        type: "BOOKMARK",
        object: { kind: "ConfigMap", metadata: { resourceVersion: String(this.#version) } },
      });
    }
  }

  /** Ends every watch as a server does when their time is up. */
  endWatches(): void {
    for (const watch of [...this.#open]) watch.end();
  }

  /** Breaks every watch after so many bytes of what comes next. */
  cutAfter(bytes: number): void {
    for (const watch of this.#open) watch.cutAfter(bytes);
  }

  /** From now on nothing arrives on the watches that are open, and nobody says so. */
  stall(): void {
    for (const watch of this.#open) watch.stalled = true;
  }

  /** Puts something into every open watch that does not belong there. */
  garble(text: string): void {
    for (const watch of this.#open) watch.raw(text);
  }

  async list(
    _resource: unknown,
    _ref: unknown,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<ObjectList<KubeObject>> {
    this.lists.push(this.#now());
    await this.#suffer(signal);
    if (options.continue !== undefined && options.resourceVersion !== undefined) throw this.#error(400, "BadRequest");
    const kept =
      options.continue === undefined ? undefined : this.#pageVersions.get(options.continue.split("@")[0] ?? "");
    if (options.continue !== undefined && kept === undefined) throw this.#error(410, "Expired");
    const version = kept?.version ?? this.#version;
    const items = kept?.items ?? this.state();
    const start = Number(options.continue?.split("@")[1] ?? 0);
    const end = options.limit === undefined ? items.length : start + options.limit;
    const more = end < items.length;
    if (more) this.#pageVersions.set(String(version), { version, items });
    return {
      metadata: { resourceVersion: String(version), ...(more && { continue: `${version}@${end}` }) },
      items: items.slice(start, end),
    };
  }

  async openWatch(
    _resource: unknown,
    _ref: unknown,
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    this.watches.push(this.#now());
    await this.#suffer(signal);
    const from = Number(options.resourceVersion);
    if (from < this.#oldest) throw this.#error(410, "Expired");
    if (from > this.#version) throw this.#error(504, "Timeout", "ResourceVersionTooLarge");
    const watch = new OpenWatch(signal, () => this.#open.delete(watch));
    this.#open.add(watch);
    for (const event of this.#events) if (event.version > from) watch.send(event);
    return { status: 200, header: () => undefined, body: watch.body };
  }

  #record(type: HistoryEvent["type"], object: ConfigMap): void {
    this.#version++;
    const name = nameOf(object);
    if (type === "DELETED") this.#objects.delete(name);
    else this.#objects.set(name, object);
    const event = { version: this.#version, type, object };
    this.#events.push(event);
    for (const watch of this.#open) watch.send(event);
  }

  async #suffer(signal: AbortSignal): Promise<void> {
    const { mood } = this;
    switch (mood.type) {
      case "well":
        return;
      case "gone":
        throw new Error("connect ECONNREFUSED");
      case "error":
        throw new ApiError({
          code: mood.code,
          reason: "x",
          message: "trouble",
          retryAfterMs: mood.retryAfterMs,
          request: "GET /",
        });
      case "mute":
        await new Promise((_, reject) => {
          // The client has a deadline of its own for a server that says nothing; here it is a second of the test.
          const timer = setTimeout(() => reject(new Error("did not answer in time")), 1);
          signal.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason);
          });
        });
    }
  }

  #error(code: number, reason: string, cause?: string): ApiError {
    const details =
      cause === undefined ? undefined : { causes: [{ reason: cause, message: "Too large resource version" }] };
    return new ApiError({ code, reason, message: reason, details, request: "GET /" });
  }
}

class OpenWatch {
  readonly body: Readable;
  stalled = false;
  #bytesLeft = Number.POSITIVE_INFINITY;

  constructor(signal: AbortSignal, onClose: () => void) {
    const onAbort = (): void => void this.body.destroy();
    this.body = new Readable({
      read() {},
      destroy(error, done) {
        signal.removeEventListener("abort", onAbort);
        onClose();
        done(error);
      },
    });
    signal.addEventListener("abort", onAbort, { once: true });
  }

  send(event: object): void {
    const { version: _, ...sent } = event as { version?: number };
    this.raw(`${JSON.stringify(sent)}\n`);
  }

  raw(text: string): void {
    if (this.stalled || this.body.destroyed) return;
    const bytes = Buffer.from(text);
    if (bytes.length <= this.#bytesLeft) {
      this.#bytesLeft -= bytes.length;
      this.body.push(bytes);
      return;
    }
    this.body.push(bytes.subarray(0, this.#bytesLeft));
    this.#bytesLeft = 0;
    // What was pushed arrives before the break.
    setImmediate(() => this.body.destroy(new Error("read ECONNRESET")));
  }

  cutAfter(bytes: number): void {
    this.#bytesLeft = bytes;
    if (bytes === 0) this.body.destroy(new Error("read ECONNRESET"));
  }

  end(): void {
    if (!this.stalled) this.body.push(null);
  }
}

function nameOf(object: ConfigMap): string {
  return object.metadata?.name ?? "";
}
