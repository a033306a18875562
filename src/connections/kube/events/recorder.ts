import { type Clock, isAbort, type Logger, messageOf, onAbort } from "../../../ground/base/index.ts";
import type { Event, ObjectReference, PodEvent, RecordNodeEvent, RecordPodEvent } from "../../../ground/model/index.ts";
import { ApiError, isNotFound } from "../api-error.ts";
import type { KubeClient } from "../client.ts";
import { resources } from "../resources.ts";
import { EventCorrelator, type Verdict } from "./correlator.ts";
import { type EventSourceName, eventObject, nodeReference, podReference } from "./event-object.ts";

export interface EventRecorderPorts {
  readonly client: Pick<KubeClient, "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random: () => number;
  /** How much more urgent things the machine has to do: events wait for them, for a while. */
  readonly churn: () => keyof typeof longestHoldMs;
}

const longestQueue = 1_000;
/** Of one object: the server takes 25 of each type at once, so that more would not be sent anyway. */
const mostOfOne = 50;
const mostTries = 12;
const retryMs = 10_000;
/** How old events get at most while pods start or stop, and while more stand in line for it. */
const longestHoldMs = { calm: 0, busy: 1_000, crowded: 5_000 };
const lookEveryMs = 50;

/** Takes events from the agent's parts and brings them to the API server, one after the other, while `run` runs. */
export class EventRecorder {
  readonly pod: RecordPodEvent = (pod, event) => this.#record(podReference(pod, event.fieldPath), event);
  readonly node: RecordNodeEvent = (event) => this.#record(nodeReference(this.#source.host), event);
  /** About any other object, a claim for instance. */
  readonly about = (reference: ObjectReference, event: PodEvent): void => this.#record(reference, event);
  readonly #source: EventSourceName;
  readonly #ports: EventRecorderPorts;
  readonly #correlator: EventCorrelator;
  readonly #queue: { readonly event: Event; readonly nanos: bigint }[] = [];
  /** How many of each object are in the queue: one that fails without end must not take the place of all others. */
  readonly #waitingOf = new Map<string, number>();
  #wake: (() => void) | undefined;
  #dropped = 0;
  #lost = 0;
  #lastNanos = 0n;

  constructor(nodeName: string, ports: EventRecorderPorts) {
    this.#source = { component: "kubelet", host: nodeName };
    this.#ports = ports;
    this.#correlator = new EventCorrelator(ports.clock);
  }

  /** Events that wait to be sent. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Events that were never stored: too many at once, or nobody answered for too long. */
  get lost(): number {
    return this.#lost;
  }

  async run(signal: AbortSignal): Promise<void> {
    using _ = onAbort(signal, () => this.#wake?.());
    while (!signal.aborted) {
      const next = this.#take();
      if (next !== undefined) {
        await this.#letPodsGoFirst(next, signal);
        await this.#deliver(next, signal);
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** What an API server on the same machine does for events is taken from the pods that start and stop. */
  async #letPodsGoFirst({ nanos }: { readonly nanos: bigint }, signal: AbortSignal): Promise<void> {
    const { clock, churn } = this.#ports;
    const ageMs = (): number => clock.now() - Number(nanos / 1_000_000n);
    while (ageMs() >= 0 && ageMs() < longestHoldMs[churn()]) await clock.sleep(lookEveryMs, signal);
  }

  #record(reference: ObjectReference, event: PodEvent): void {
    const { log } = this.#ports;
    const { type, reason, message, fieldPath = "" } = event;
    const object = reference.namespace === undefined ? reference.name : `${reference.namespace}/${reference.name}`;
    log.debug(3, "Event occurred", { object, fieldPath, kind: reference.kind, type, reason, message });
    const about = keyOf(reference);
    const waiting = this.#waitingOf.get(about) ?? 0;
    if (this.#queue.length >= longestQueue || waiting >= mostOfOne) {
      this.#lost++;
      if (this.#dropped++ === 0) {
        log.warn("Too many events wait to be sent; dropping new ones", { waiting: this.#queue.length, object });
      }
      return;
    }
    this.#waitingOf.set(about, waiting + 1);
    const nanos = this.#nextNanos();
    this.#queue.push({ event: eventObject(this.#source, reference, event, nanos), nanos });
    this.#wake?.();
  }

  #take(): { readonly event: Event; readonly nanos: bigint } | undefined {
    const next = this.#queue.shift();
    if (next === undefined) return undefined;
    const about = keyOf(next.event.involvedObject);
    const left = (this.#waitingOf.get(about) ?? 1) - 1;
    if (left === 0) this.#waitingOf.delete(about);
    else this.#waitingOf.set(about, left);
    return next;
  }

  /** The time names the event, so no two may have the same. */
  #nextNanos(): bigint {
    const now = BigInt(Math.trunc(this.#ports.clock.now() * 1_000)) * 1_000n;
    this.#lastNanos = now > this.#lastNanos ? now : this.#lastNanos + 1n;
    return this.#lastNanos;
  }

  async #deliver({ event, nanos }: { event: Event; nanos: bigint }, signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#ports;
    const verdict = this.#correlator.judge(event, nanos);
    if (verdict.type === "drop") {
      this.#lost++;
      return;
    }
    for (let tries = 1; ; tries++) {
      try {
        this.#correlator.sent(verdict.key, await this.#send(verdict, signal));
        this.#dropped = 0;
        return;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        const { reason, involvedObject } = event;
        const fields = { reason, object: involvedObject.name, err: messageOf(error) };
        // An answer, whatever it is, will be the same the next time.
        if (error instanceof ApiError) {
          log.debug(error.code === 409 || error.code === 403 ? 3 : 1, "The API server refused an event", fields);
          return;
        }
        if (tries >= mostTries) {
          log.warn("Giving up on an event", { ...fields, tries });
          this.#lost++;
          return;
        }
        log.debug(3, "Cannot send an event; will try again", { ...fields, tries });
      }
      // Nodes that lost the same server do not come back in step.
      await clock.sleep(tries === 1 ? retryMs * random() : retryMs, signal);
    }
  }

  async #send(verdict: Exclude<Verdict, { type: "drop" }>, signal: AbortSignal): Promise<Event> {
    const { client } = this.#ports;
    const { event } = verdict;
    const { namespace, name } = event.metadata;
    if (verdict.type === "update") {
      try {
        const patch = { type: "strategic", body: verdict.patch } as const;
        return await client.patch(resources.events, { namespace, name }, patch, signal);
      } catch (error) {
        // Events live for an hour; one that has gone is made anew.
        if (!isNotFound(error)) throw error;
      }
    }
    return client.create(resources.events, { namespace }, event, signal);
  }
}

function keyOf({ kind, namespace, name, uid }: ObjectReference): string {
  return JSON.stringify([kind, namespace, name, uid]);
}
