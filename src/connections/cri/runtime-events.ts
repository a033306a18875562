import { type Clock, type Logger, TaskScope } from "../../ground/base/index.ts";
import type { PodUid, SandboxId } from "../../ground/model/index.ts";
import { criNamespace, eventFilters, hintFromEnvelope } from "./containerd-events.ts";
import { CriError } from "./errors.ts";
import { EventQueue } from "./event-queue.ts";
import type { Envelope, SubscribeRequest } from "./gen/containerd/events.ts";
import { type ContainerEventResponse, ContainerEventType } from "./gen/runtime/v1/events.ts";
import type { RuntimeEvent, RuntimeEventSource } from "./runtime-event.ts";
import type { RuntimeService } from "./services.ts";
import { untilStopped } from "./until-stopped.ts";

const firstRetryMs = 100;
const longestRetryMs = 2_000;
/** How often a runtime without events is asked again: it may have been replaced by one with events. */
const askAgainMs = 300_000;
const answerWithinMs = 10_000;
const refusalWithinMs = 100;

export interface RuntimeEventPorts {
  readonly runtime: Pick<RuntimeService, "getContainerEvents" | "version" | "containerStatus" | "podSandboxStatus">;
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
export class RuntimeEvents {
  readonly #ports: RuntimeEventPorts;
  #source: RuntimeEventSource | undefined;

  constructor(ports: RuntimeEventPorts) {
    this.#ports = ports;
  }

  /** The stream in use; undefined while there is no connection. */
  get source(): RuntimeEventSource | undefined {
    return this.#source;
  }

  /** Never ends by itself; throws the signal's reason when aborted. One subscription at a time. */
  async *subscribe(signal: AbortSignal): AsyncGenerator<RuntimeEvent, never> {
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

  async *#anyStream(signal: AbortSignal): AsyncGenerator<RuntimeEvent, Ending> {
    const { runtime, containerdEvents } = this.#ports;
    const openCri = (streamSignal: AbortSignal) => runtime.getContainerEvents({}, { signal: streamSignal });
    const fromCri = yield* this.#stream("cri", openCri, hintFromCri, signal);
    if (fromCri.type === "broken" || containerdEvents === undefined) return fromCri;
    const openContainerd = (streamSignal: AbortSignal) =>
      containerdEvents({ filters: [...eventFilters] }, criNamespace, streamSignal);
    return yield* this.#stream("containerd", openContainerd, hintFromEnvelope, signal);
  }

  async *#stream<Item>(
    source: RuntimeEventSource,
    open: (signal: AbortSignal) => AsyncIterable<Item>,
    hintOf: (item: Item) => RuntimeEvent | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<RuntimeEvent, Ending> {
    await using scope = new TaskScope(signal);
    const queue = new EventQueue<RuntimeEvent, Ending>();
    let accepted = false;
    const accept = (): void => {
      if (accepted) return;
      accepted = true;
      this.#source = source;
      queue.push({ kind: "gap", source });
    };
    const task = (name: string, work: (signal: AbortSignal) => Promise<void>): void =>
      scope.spawn(name, async (taskSignal) => {
        try {
          await work(taskSignal);
        } catch (error) {
          if (error instanceof CriError) queue.end(endingOf(error));
          else queue.fail(error);
        }
      });
    task("read events", async (readSignal) => {
      for await (const item of open(readSignal)) {
        accept();
        const hint = hintOf(item);
        if (hint === undefined) continue;
        if (source !== "containerd" || hint.kind !== "stopped") queue.push(hint);
        else {
          task(`see ${hint.id} stopped`, async (seeSignal) => {
            await untilStopped(hint.id, this.#ports, seeSignal);
            queue.push(hint);
          });
        }
      }
      // A runtime whose events are switched off ends the stream at once and calls that success.
      queue.end(
        accepted ? { type: "broken", error: new Error("the runtime ended the stream") } : { type: "notOffered" },
      );
    });
    task("await acceptance", async (acceptSignal) => {
      await this.#accepted(acceptSignal);
      accept();
    });
    return yield* queue.drain(signal);
  }

  /**
   * A runtime does not confirm a stream. But it takes requests in order, so once a later one is answered the stream has
   * reached it, and a refusal would follow within moments.
   */
  async #accepted(signal: AbortSignal): Promise<void> {
    await this.#ports.runtime.version({ version: "" }, { signal, timeoutMs: answerWithinMs });
    await this.#ports.clock.sleep(refusalWithinMs, signal);
  }
}

function endingOf(error: CriError): Ending {
  return error.code === "Unimplemented" ? { type: "notOffered" } : { type: "broken", error };
}

const criKinds = {
  [ContainerEventType.CONTAINER_CREATED_EVENT]: "created",
  [ContainerEventType.CONTAINER_STARTED_EVENT]: "started",
  [ContainerEventType.CONTAINER_STOPPED_EVENT]: "stopped",
  [ContainerEventType.CONTAINER_DELETED_EVENT]: "deleted",
} as const;

function hintFromCri(event: ContainerEventResponse): RuntimeEvent {
  const kind = criKinds[event.containerEventType] ?? "changed";
  const sandbox = event.podSandboxStatus;
  if (sandbox?.metadata === undefined) return { kind, id: event.containerId };
  const { id, metadata } = sandbox;
  return { kind, id: event.containerId, podUid: metadata.uid as PodUid, sandboxId: id as SandboxId };
}
