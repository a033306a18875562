import { ContainerEventResponse, ContainerEventType, CriError } from "../../../connections/cri/index.ts";
import {
  type Clock,
  isAbort,
  type Logger,
  messageOf,
  onAbort,
  SerialByKey,
  TaskScope,
} from "../../../ground/base/index.ts";
import type { Engine, EngineEvent } from "../engine/index.ts";
import { isPart } from "../mapping/labels.ts";

export interface EventPorts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  /** The daemon is there again, or for the first time: whatever was missed has to be looked at. */
  readonly onOpened: (signal: AbortSignal) => Promise<void>;
  /** Called before anybody is told, so that whoever looks after the event sees what it tells of. */
  readonly onContainer: (
    event: EngineEvent,
    signal: AbortSignal,
  ) => Promise<Omit<ContainerEventResponse, "containerEventType" | "createdAt">>;
  readonly onImage: () => void;
}

const kinds = new Map<string, ContainerEventType>([
  ["create", ContainerEventType.CONTAINER_CREATED_EVENT],
  ["start", ContainerEventType.CONTAINER_STARTED_EVENT],
  ["die", ContainerEventType.CONTAINER_STOPPED_EVENT],
  ["destroy", ContainerEventType.CONTAINER_DELETED_EVENT],
]);

const firstRetryMs = 100;
const longestRetryMs = 2_000;
/** A reader that is so far behind is told to begin anew. */
const longestQueue = 10_000;

interface Subscriber {
  readonly queue: ContainerEventResponse[];
  wake: () => void;
  end: CriError | undefined;
}

/** Docker's events as CRI has them: one stream from Docker, any number of readers. */
export class DockerEvents {
  readonly #ports: EventPorts;
  readonly #subscribers = new Set<Subscriber>();
  readonly #byContainer = new SerialByKey<string>();
  #isOpen = false;

  constructor(ports: EventPorts) {
    this.#ports = ports;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Listens to Docker until the signal aborts. A break ends every reader's stream: what it missed it has to look for. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#ports;
    let retryMs = firstRetryMs;
    for (;;) {
      const startedAt = clock.monotonic();
      try {
        await this.#listen(signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.debug(2, "no events of docker", { error: messageOf(error) });
      }
      signal.throwIfAborted();
      this.#close();
      retryMs = clock.monotonic() - startedAt > longestRetryMs ? firstRetryMs : Math.min(retryMs * 2, longestRetryMs);
      await clock.sleep(retryMs, signal);
    }
  }

  /** Events from now on; ends with Unavailable when Docker goes away. */
  async *stream(signal: AbortSignal): AsyncGenerator<ContainerEventResponse, never> {
    if (!this.#isOpen) throw gone();
    const subscriber: Subscriber = { queue: [], wake: () => {}, end: undefined };
    using _ = onAbort(signal, () => subscriber.wake());
    this.#subscribers.add(subscriber);
    try {
      for (;;) {
        signal.throwIfAborted();
        const event = subscriber.queue.shift();
        if (event !== undefined) yield event;
        else if (subscriber.end !== undefined) throw subscriber.end;
        else {
          await new Promise<void>((resolve) => {
            subscriber.wake = resolve;
          });
        }
      }
    } finally {
      this.#subscribers.delete(subscriber);
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    await using scope = new TaskScope(signal);
    const opened = (): void => {
      this.#isOpen = true;
      scope.spawn("look at what was missed", (looking) => this.#ports.onOpened(looking));
    };
    for await (const event of this.#ports.engine.events(scope.signal, opened)) {
      if (event.type === "image") this.#ports.onImage();
      else if (kinds.has(event.action) && isOfPod(event)) {
        scope.spawn(`event of ${event.id}`, (telling) =>
          this.#byContainer.run(event.id, () => this.#tell(event, telling)),
        );
      }
    }
    scope.signal.throwIfAborted();
  }

  async #tell(event: EngineEvent, signal: AbortSignal): Promise<void> {
    const containerEventType = kinds.get(event.action);
    if (containerEventType === undefined) return;
    const details = await this.#ports.onContainer(event, signal);
    const message = ContainerEventResponse.fromPartial({ ...details, containerEventType, createdAt: event.timeNanos });
    for (const subscriber of this.#subscribers) {
      if (subscriber.queue.length >= longestQueue) {
        subscriber.end = new CriError("ResourceExhausted", "getContainerEvents", "the reader of events is too slow");
      } else if (subscriber.end === undefined) subscriber.queue.push(message);
      subscriber.wake();
    }
  }

  #close(): void {
    this.#isOpen = false;
    for (const subscriber of this.#subscribers) {
      subscriber.end ??= gone();
      subscriber.wake();
    }
  }
}

function isOfPod({ attributes }: EngineEvent): boolean {
  const told = { name: attributes["name"] ?? "", labels: attributes };
  return isPart(told, "container") || isPart(told, "podsandbox");
}

function gone(): CriError {
  return new CriError("Unavailable", "getContainerEvents", "docker's event stream is not there");
}
