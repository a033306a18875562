import { type Clock, TokenBucket } from "../../../ground/base/index.ts";
import type { Event } from "../../../ground/model/index.ts";
import { eventName, timestamp } from "./event-object.ts";
import { Lru } from "./lru.ts";

/** What to do with an event: a new one is created, one seen before has its count raised. */
export type Verdict =
  | { readonly type: "create"; readonly event: Event; readonly key: string }
  | { readonly type: "update"; readonly event: Event; readonly patch: object; readonly key: string }
  | { readonly type: "drop" };

const cacheSize = 4096;
const similarWithinMs = 600_000;
const mostSimilar = 10;
const spamBurst = 25;
const spamPerSecond = 1 / 300;

/**
 * Keeps a node from flooding the API server with events: messages that differ only a little are combined, repeated
 * events are counted instead of repeated, and an object that has too much to say is cut short.
 */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #groups = new Lru<string, { readonly messages: Set<string>; lastAt: number }>(cacheSize);
  readonly #sent = new Lru<string, { name: string; count: number; firstTimestamp: string | undefined }>(cacheSize);
  readonly #buckets = new Lru<string, TokenBucket>(cacheSize);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  judge(event: Event, nanos: bigint): Verdict {
    const { event: combined, key } = this.#combine(event, nanos);
    const verdict = this.#count(combined, key);
    return this.#isSpam(event) ? { type: "drop" } : verdict;
  }

  /** The server has it: what follows refers to this object. */
  sent(key: string, stored: Event): void {
    const { metadata, count = 1, firstTimestamp } = stored;
    this.#sent.set(key, { name: metadata.name ?? "", count, firstTimestamp });
  }

  #combine(event: Event, nanos: bigint): { event: Event; key: string } {
    const groupKey = keyOf(event, "group");
    const now = this.#clock.now();
    const known = this.#groups.get(groupKey);
    const fresh = known === undefined || now - known.lastAt > similarWithinMs;
    const group = fresh ? { messages: new Set<string>(), lastAt: now } : known;
    group.lastAt = now;
    group.messages.add(event.message ?? "");
    this.#groups.set(groupKey, group);
    if (group.messages.size < mostSimilar) return { event, key: keyOf(event, "event") };
    // Full: one has to go, so that the next new message finds it full again.
    for (const message of group.messages) {
      group.messages.delete(message);
      break;
    }
    const { involvedObject, metadata, type, reason, source, apiVersion, kind } = event;
    const time = timestamp(nanos);
    const combined: Event = {
      apiVersion,
      kind,
      metadata: { name: eventName(involvedObject.name ?? "", nanos), namespace: metadata.namespace },
      involvedObject,
      reason,
      message: `(combined from similar events): ${event.message}`,
      source,
      firstTimestamp: time,
      lastTimestamp: time,
      count: 1,
      type,
    };
    return { event: combined, key: groupKey };
  }

  #count(event: Event, key: string): Exclude<Verdict, { type: "drop" }> {
    const known = this.#sent.get(key);
    if (known === undefined) {
      this.sent(key, event);
      return { type: "create", event, key };
    }
    const count = known.count + 1;
    const { name, firstTimestamp } = known;
    const counted: Event = { ...event, metadata: { ...event.metadata, name }, count, firstTimestamp };
    this.sent(key, counted);
    const { lastTimestamp, message } = counted;
    return { type: "update", event: counted, patch: { count, lastTimestamp, message }, key };
  }

  #isSpam(event: Event): boolean {
    const key = keyOf(event, "object");
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = new TokenBucket(spamPerSecond, spamBurst, this.#clock);
      this.#buckets.set(key, bucket);
    }
    return !bucket.tryTake();
  }
}

function keyOf(event: Event, kind: "event" | "group" | "object"): string {
  const { source, involvedObject, type, reason, message, reportingComponent, reportingInstance } = event;
  const { fieldPath, resourceVersion: _, ...object } = involvedObject;
  const about = [source?.component, source?.host, object.kind, object.namespace, object.name, object.uid];
  const common = [...about, object.apiVersion, type];
  switch (kind) {
    case "object":
      return JSON.stringify(common);
    case "group":
      return JSON.stringify([...common, reason, reportingComponent, reportingInstance]);
    case "event":
      return JSON.stringify([...common, reason, fieldPath, message]);
  }
}
