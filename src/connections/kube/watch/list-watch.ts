import { type Clock, explain, isAbort, type Logger, Pause } from "../../../ground/base/index.ts";
import { ApiError, apiErrorOfStatus, isExpired } from "../api-error.ts";
import type { KubeClient, ListOptions } from "../client.ts";
import { type KubeObject, pathOf, type Resource } from "../resources.ts";
import { RetryPace } from "./retry-pace.ts";
import { SilenceLimit } from "./silence-limit.ts";
import { eventsOf, GarbledWatchError, type StreamEvent } from "./watch-stream.ts";

export type WatchClient = Pick<KubeClient, "list" | "openWatch">;

export interface ListWatchScope<Kind extends KubeObject> {
  readonly resource: Resource<Kind>;
  /** Undefined: all namespaces. */
  readonly namespace?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** How long the server is asked to keep one watch open; drawn between the two. */
  readonly watchSeconds?: readonly [number, number] | undefined;
}

/** Who takes what is listed and watched. */
export interface ListWatchTaker<Kind> {
  startList(): { add(object: Kind): void; finish(): void };
  set(object: Kind): void;
  delete(object: Kind): void;
}

export interface ListWatchPorts {
  readonly client: WatchClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random: () => number;
}

const pageSize = 500;
const customaryWatchSeconds = [300, 600] as const;
/** A watch that lasted this long was a good one; shorter ones make us careful. */
const worthwhileMs = 5_000;
const mostGarbledInARow = 3;

/**
 * Lists, then watches from there, for ever. Whatever breaks, it goes on from the last thing it knows, or lists anew when
 * the server has forgotten that; a connection that falls silent is replaced, a server in trouble is left in peace.
 */
export class ListWatch<Kind extends KubeObject> {
  readonly #scope: ListWatchScope<Kind>;
  readonly #taker: ListWatchTaker<Kind>;
  readonly #ports: ListWatchPorts;
  readonly #pace: RetryPace;
  readonly #pause: Pause;
  readonly #silence = new SilenceLimit();
  readonly #onListed: () => void;
  /** Where to go on watching; undefined: list first. */
  #position: string | undefined;
  #hasListed = false;
  #garbledInARow = 0;
  #problem: string | undefined;
  #heardAt: number | undefined;
  #nextTryAt: number | undefined;

  constructor(scope: ListWatchScope<Kind>, taker: ListWatchTaker<Kind>, ports: ListWatchPorts, onListed: () => void) {
    this.#scope = scope;
    this.#taker = taker;
    this.#ports = ports;
    this.#pace = new RetryPace(ports.random);
    this.#pause = new Pause(ports.clock);
    this.#onListed = onListed;
  }

  /** Why what is known may be old; undefined while the watch is well. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** When the server last said anything, on the clock's monotonic scale; undefined: never. */
  get heardAt(): number | undefined {
    return this.#heardAt;
  }

  /** While it waits before it tries again: until when, on the same scale. */
  get nextTryAt(): number | undefined {
    return this.#nextTryAt;
  }

  /** Try again now, for when there is reason to believe that the server is back. */
  hasten(): void {
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = await this.#turn(signal);
      if (waitMs <= 0) continue;
      this.#nextTryAt = this.#ports.clock.monotonic() + waitMs;
      await this.#pause.wait(waitMs, signal);
      this.#nextTryAt = undefined;
    }
  }

  /** One list or one watch; resolves with how long to wait before the next. */
  async #turn(signal: AbortSignal): Promise<number> {
    const { clock } = this.#ports;
    const begunAt = clock.monotonic();
    let events = 0;
    try {
      if (this.#position === undefined) {
        this.#position = await this.#list(signal);
        return 0;
      }
      for await (const event of this.#watch(this.#position, signal)) {
        events++;
        this.#take(event);
      }
      const lastedMs = clock.monotonic() - begunAt;
      if (lastedMs >= worthwhileMs) return this.#pace.succeeded();
      return events > 0 ? this.#pace.progressed() : this.#pace.failed(undefined);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#digest(error);
      const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      if (clock.monotonic() - begunAt >= worthwhileMs && retryAfterMs === undefined) return this.#pace.succeeded();
      return events > 0 ? this.#pace.progressed() : this.#pace.failed(retryAfterMs);
    }
  }

  /** Takes every page; resolves with the version that the list shows. */
  async #list(signal: AbortSignal): Promise<string> {
    const { client } = this.#ports;
    const { resource, namespace, fieldSelector, labelSelector } = this.#scope;
    const selectors = { fieldSelector, labelSelector };
    // At first anything will do, and the server has that in memory; later it must not be older than what was seen.
    const resourceVersion = this.#hasListed ? undefined : "0";
    const ask = (options: ListOptions) => client.list(resource, { namespace }, { ...selectors, ...options }, signal);
    let list = this.#taker.startList();
    let page = await ask({ limit: pageSize, resourceVersion });
    for (;;) {
      for (const item of page.items ?? []) list.add(item);
      const next = page.metadata?.continue;
      if (!next) break;
      try {
        page = await ask({ limit: pageSize, continue: next });
      } catch (error) {
        if (!isExpired(error)) throw error;
        // Too slow for pages: the server has forgotten what the first ones showed. All at once, then.
        list = this.#taker.startList();
        page = await ask({});
      }
    }
    const version = page.metadata?.resourceVersion;
    if (!version) throw new GarbledWatchError("a list without a resource version");
    list.finish();
    this.#hasListed = true;
    this.#heardAt = this.#ports.clock.monotonic();
    this.#onListed();
    return version;
  }

  async *#watch(resourceVersion: string, signal: AbortSignal): AsyncGenerator<StreamEvent<Kind>, void, undefined> {
    const { client, clock, log, random } = this.#ports;
    const { resource, namespace, fieldSelector, labelSelector } = this.#scope;
    const [least, most] = this.#scope.watchSeconds ?? customaryWatchSeconds;
    const timeoutSeconds = Math.round(least + random() * (most - least));
    const options = { resourceVersion, fieldSelector, labelSelector, timeoutSeconds };
    const { body } = await client.openWatch(resource, { namespace }, options, signal);
    this.#well();
    let heardAt = clock.monotonic();
    this.#heardAt = heardAt;
    let silent = false;
    const listen = () => {
      const limitMs = this.#silence.limitMs(timeoutSeconds);
      const quietMs = clock.monotonic() - heardAt;
      return clock.after(Math.max(limitMs - quietMs, 0), () => {
        if (clock.monotonic() - heardAt < this.#silence.limitMs(timeoutSeconds)) timer = listen();
        else {
          silent = true;
          body.destroy();
        }
      });
    };
    let timer = listen();
    try {
      for await (const event of eventsOf<Kind>(body)) {
        heardAt = clock.monotonic();
        this.#heardAt = heardAt;
        this.#silence.heard(event.type);
        yield event;
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!silent) throw error;
    } finally {
      timer.cancel();
      body.destroy();
    }
    if (!silent) return;
    this.#silence.wasSilent();
    log.debug(2, "Replacing a watch that has fallen silent", { path: this.#path });
  }

  #take(event: StreamEvent<Kind>): void {
    if (event.type === "ERROR") throw apiErrorOfStatus(`the watch of ${this.#path}`, event.object);
    const version = event.object.metadata?.resourceVersion;
    if (!version) throw new GarbledWatchError("an object without a resource version");
    if (event.type === "DELETED") this.#taker.delete(event.object);
    else if (event.type !== "BOOKMARK") this.#taker.set(event.object);
    this.#position = version;
    this.#garbledInARow = 0;
  }

  /** Decides from where to go on after a failure. */
  #digest(error: unknown): void {
    const { log } = this.#ports;
    const text = explain(error);
    if (isExpired(error) || isUnknownVersion(error)) {
      this.#position = undefined;
      log.debug(2, "The version to watch from is gone; listing again", { path: this.#path });
      return;
    }
    // A place in the history that cannot be read is left behind; a list goes around it.
    if (error instanceof GarbledWatchError && ++this.#garbledInARow >= mostGarbledInARow) {
      this.#position = undefined;
      this.#garbledInARow = 0;
    }
    if (this.#problem === undefined)
      log.warn("Cannot watch the API server; trying again", { path: this.#path, err: text });
    else log.debug(2, "Still cannot watch the API server", { path: this.#path, err: text });
    this.#problem = text;
  }

  #well(): void {
    if (this.#problem === undefined) return;
    this.#problem = undefined;
    this.#ports.log.info("Watching the API server again", { path: this.#path });
  }

  get #path(): string {
    const { resource, namespace } = this.#scope;
    return pathOf(resource, { namespace });
  }
}

/** The server does not know the version we come with: it was set back to an older state, or is another one. */
function isUnknownVersion(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const causes = error.details?.causes ?? [];
  return error.code === 400 || causes.some(({ reason }) => reason === "ResourceVersionTooLarge");
}
