import { type Clock, isAbort, type Logger } from "../base/index.ts";
import type { PodUid, SandboxId } from "../model/index.ts";
import { criNamespace, eventFilters, hintFromEnvelope } from "./containerd-events.ts";
import { CriError } from "./errors.ts";
import type { Envelope, SubscribeRequest } from "./gen/containerd/events.ts";
import { type ContainerEventResponse, ContainerEventType } from "./gen/runtime/v1/events.ts";
import type { ContainerHint, HintSource } from "./hint.ts";
import type { RuntimeService } from "./services.ts";

const firstRetryMs = 100;
const longestRetryMs = 2_000;
/** How often a runtime without events is asked again: it may have been replaced by one with events. */
const askAgainMs = 300_000;
const answerWithinMs = 10_000;
const refusalWithinMs = 100;

export interface HintPorts {
  readonly runtime: Pick<RuntimeService, "getContainerEvents" | "version">;
  /** containerd's own stream; absent where the runtime is no separate process. */
  readonly containerdEvents?: (
    request: SubscribeRequest,
    namespace: string,
    signal: AbortSignal,
  ) => AsyncIterable<Envelope>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Why a stream is over: it was never offered, or it broke after having been there. */
type Ending = { readonly type: "notOffered" } | { readonly type: "broken"; readonly error: unknown };

/**
 * Hints about containers from whichever stream the runtime offers. The stream is renewed by itself; each time it has
 * been, a `gap` comes first.
 */
export class ContainerHints {
  readonly #ports: HintPorts;
  #source: HintSource | undefined;

  constructor(ports: HintPorts) {
    this.#ports = ports;
  }

  /** The stream in use; undefined while there is no connection. */
  get source(): HintSource | undefined {
    return this.#source;
  }

  /** Never ends by itself; throws the signal's reason when aborted. One subscription at a time. */
  async *subscribe(signal: AbortSignal): AsyncGenerator<ContainerHint, never> {
    const { clock, log } = this.#ports;
    let retryMs = firstRetryMs;
    for (;;) {
      const startedAt = clock.monotonic();
      const ending = yield* this.#anyStream(signal);
      this.#source = undefined;
      signal.throwIfAborted();
      if (ending.type === "notOffered") {
        log.info("the container runtime offers no events; changes are found by listing");
        this.#source = "none";
        yield { kind: "gap", source: "none" };
        await clock.sleep(askAgainMs, signal);
        continue;
      }
      // A stream that lasted was healthy; only one that keeps breaking is asked for less often.
      retryMs = clock.monotonic() - startedAt > longestRetryMs ? firstRetryMs : Math.min(retryMs * 2, longestRetryMs);
      log.debug(2, "lost the event stream of the container runtime", { retryMs, error: ending.error });
      await clock.sleep(retryMs, signal);
    }
  }

  async *#anyStream(signal: AbortSignal): AsyncGenerator<ContainerHint, Ending> {
    const { runtime, containerdEvents } = this.#ports;
    const openCri = (streamSignal: AbortSignal) => runtime.getContainerEvents({}, { signal: streamSignal });
    const fromCri = yield* this.#stream("cri", openCri, hintFromCri, signal);
    if (fromCri.type === "broken" || containerdEvents === undefined) return fromCri;
    const openContainerd = (streamSignal: AbortSignal) =>
      containerdEvents({ filters: [...eventFilters] }, criNamespace, streamSignal);
    return yield* this.#stream("containerd", openContainerd, hintFromEnvelope, signal);
  }

  async *#stream<Item>(
    source: HintSource,
    open: (signal: AbortSignal) => AsyncIterable<Item>,
    hintOf: (item: Item) => ContainerHint | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<ContainerHint, Ending> {
    const streaming = new AbortController();
    const onAbort = (): void => streaming.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const items = open(streaming.signal)[Symbol.asyncIterator]();
    try {
      let next = items.next();
      const first = await Promise.race([next, this.#accepted(streaming.signal)]);
      // A runtime whose events are switched off ends the stream at once and calls that success.
      if (first?.done) return { type: "notOffered" };
      this.#source = source;
      yield { kind: "gap", source };
      for (;;) {
        const { done, value } = await next;
        if (done) return { type: "broken", error: new Error("the runtime ended the stream") };
        const hint = hintOf(value);
        if (hint !== undefined) yield hint;
        next = items.next();
      }
    } catch (error) {
      if (isAbort(error, signal) || !(error instanceof CriError)) throw error;
      return error.code === "Unimplemented" ? { type: "notOffered" } : { type: "broken", error };
    } finally {
      signal.removeEventListener("abort", onAbort);
      // The iterator may sit in a read that nothing but the abort will end.
      streaming.abort();
      await items.return?.();
    }
  }

  /**
   * A runtime does not confirm a stream. But it takes requests in order, so once a later one is answered the stream has
   * reached it, and a refusal would follow within moments.
   */
  async #accepted(signal: AbortSignal): Promise<undefined> {
    await this.#ports.runtime.version({ version: "" }, { signal, timeoutMs: answerWithinMs });
    await this.#ports.clock.sleep(refusalWithinMs, signal);
  }
}

const criKinds = {
  [ContainerEventType.CONTAINER_CREATED_EVENT]: "created",
  [ContainerEventType.CONTAINER_STARTED_EVENT]: "started",
  [ContainerEventType.CONTAINER_STOPPED_EVENT]: "stopped",
  [ContainerEventType.CONTAINER_DELETED_EVENT]: "deleted",
} as const;

function hintFromCri(event: ContainerEventResponse): ContainerHint {
  const kind = criKinds[event.containerEventType] ?? "changed";
  const sandbox = event.podSandboxStatus;
  if (sandbox?.metadata === undefined) return { kind, id: event.containerId };
  const { id, metadata } = sandbox;
  return { kind, id: event.containerId, podUid: metadata.uid as PodUid, sandboxId: id as SandboxId };
}
