import type { Clock } from "./clock.ts";
import { cutText } from "./cut-text.ts";
import { Topic } from "./topic.ts";
import type { OpenSpan } from "./tracer.ts";

/** Pods put words in here that nobody bounds; 200 entries of this length for 110 pods still fit into memory. */
const longestTextBytes = 1024;

/** Containers of a pod take turns at failing; so many steps of others may lie between two tries. */
const triesApart = 8;

/**
 * A bounded timeline per key: which step began when, how it ended, what it is waiting for now and when
 * the next try is due. `nodelet why` and `nodelet blame` print it; nothing decides by it.
 */
export class Ledger<Key, Step extends string = string> {
  readonly #timelines = new Map<Key, Timeline>();
  readonly #clock: Clock;
  readonly #maxEntries: number;
  readonly #onStep: ((step: FinishedStep) => void) | undefined;
  readonly #changed = new Topic<[key: Key]>();
  readonly #onBegin: OnBegin<Key, Step> | undefined;

  /** `onStep` is told of every step that began and has ended, for metrics; `onBegin` when one begins, for traces. */
  constructor(clock: Clock, maxEntries = 200, onStep?: (step: FinishedStep) => void, onBegin?: OnBegin<Key, Step>) {
    this.#onBegin = onBegin;
    this.#clock = clock;
    this.#maxEntries = maxEntries;
    this.#onStep = onStep;
  }

  /** Records that a step began; call `end` or `fail` on the result exactly once. */
  begin(key: Key, step: Step, subject = "", message?: string): LedgerSpan {
    const entry: MutableEntry = { step, subject: cut(subject), startedAt: this.#clock.now(), outcome: "running" };
    if (message !== undefined) entry.message = cut(message);
    this.#append(key, entry);
    const span = this.#onBegin?.(key, step, subject);
    return {
      within: (work) => (span === undefined ? work() : span.within(work)),
      end: (message) => {
        this.#finish(key, entry, "ok", message);
        span?.end();
      },
      fail: (message) => {
        this.#finish(key, entry, "failed", message);
        span?.end(message);
      },
    };
  }

  /** Records something that happens at one moment. */
  note(key: Key, step: Step, message: string, subject = ""): void {
    const now = this.#clock.now();
    const said = { subject: cut(subject), message: cut(message) };
    this.#append(key, { step, ...said, startedAt: now, endedAt: now, outcome: "ok" });
  }

  /** Says what the subject is waiting for, and when it is tried again; undefined clears it. */
  block(key: Key, blocker: Omit<Blocker, "since"> | undefined): void {
    const timeline = this.#timeline(key);
    if (blocker === undefined) {
      if (timeline.blocker === undefined) return;
      timeline.blocker = undefined;
    } else {
      const message = cut(blocker.message);
      const same = timeline.blocker?.reason === blocker.reason && timeline.blocker.message === message;
      timeline.blocker = { ...blocker, message, since: same ? (timeline.blocker?.since ?? 0) : this.#clock.now() };
    }
    this.#changed.tell(key);
  }

  /** Tells whose timeline has changed, from now on until the returned function is called. */
  watch(listener: (key: Key) => void): () => void {
    return this.#changed.on(listener);
  }

  read(key: Key): LedgerView | undefined {
    return this.#timelines.get(key);
  }

  forget(key: Key): void {
    this.#timelines.delete(key);
  }

  #timeline(key: Key): Timeline {
    let timeline = this.#timelines.get(key);
    if (timeline === undefined) {
      timeline = { entries: [], dropped: 0, blocker: undefined };
      this.#timelines.set(key, timeline);
    }
    return timeline;
  }

  #append(key: Key, entry: MutableEntry): void {
    const timeline = this.#timeline(key);
    const last = timeline.entries.at(-1);
    // A step that fails the same way again and again is one line with a count, or it would push out the history.
    if (last !== undefined && isRepeat(last, entry)) {
      last.repeats = (last.repeats ?? 1) + 1;
      last.endedAt = entry.endedAt;
      this.#changed.tell(key);
      return;
    }
    timeline.entries.push(entry);
    if (timeline.entries.length > this.#maxEntries) {
      // The first entries tell how the pod came to be: keep a quarter of them, drop from the middle.
      timeline.entries.splice(Math.floor(this.#maxEntries / 4), 1);
      timeline.dropped++;
    }
    this.#changed.tell(key);
  }

  #finish(key: Key, entry: MutableEntry, outcome: "ok" | "failed", message: string | undefined): void {
    entry.outcome = outcome;
    entry.endedAt = this.#clock.now();
    if (message !== undefined) entry.message = cut(message);
    this.#onStep?.({ step: entry.step, outcome, durationMs: entry.endedAt - entry.startedAt });
    if (outcome === "failed") this.#joinEarlier(key, entry);
    this.#changed.tell(key);
  }

  /** A try that fails as the one before did is one line with a count, too: it is the others that tell something. */
  #joinEarlier(key: Key, entry: MutableEntry): void {
    const entries = this.#timelines.get(key)?.entries ?? [];
    const at = entries.lastIndexOf(entry);
    const before = entries.slice(Math.max(0, at - triesApart), Math.max(0, at));
    const last = before.findLast(({ step, subject }) => step === entry.step && subject === entry.subject);
    if (last === undefined || !isRepeat(last, entry)) return;
    entries.splice(at, 1);
    last.repeats = (last.repeats ?? 1) + 1;
    last.lastAt = entry.startedAt;
  }
}

type OnBegin<Key, Step> = (key: Key, step: Step, subject: string) => OpenSpan | undefined;

export interface LedgerSpan {
  /** Runs what the step consists of, so that traces show it below the step. */
  within<Result>(work: () => Promise<Result>): Promise<Result>;
  end(message?: string): void;
  fail(message: string): void;
}

export interface FinishedStep {
  readonly step: string;
  readonly outcome: "ok" | "failed";
  readonly durationMs: number;
}

export interface LedgerEntry {
  readonly step: string;
  /** What the step was about; empty for all that the key stands for. */
  readonly subject: string;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  readonly outcome: "running" | "ok" | "failed";
  readonly message?: string | undefined;
  readonly repeats?: number | undefined;
  /** When the last of several tries began that failed alike; start and end are those of the first. */
  readonly lastAt?: number | undefined;
}

export interface Blocker {
  readonly reason: string;
  readonly message: string;
  readonly since: number;
  readonly nextTryAt?: number | undefined;
}

export interface LedgerView {
  readonly entries: readonly LedgerEntry[];
  readonly dropped: number;
  readonly blocker: Blocker | undefined;
}

type MutableEntry = { -readonly [Field in keyof LedgerEntry]: LedgerEntry[Field] };

interface Timeline {
  readonly entries: MutableEntry[];
  dropped: number;
  blocker: Blocker | undefined;
}

function cut(text: string): string {
  return cutText(text, longestTextBytes);
}

function isRepeat(last: LedgerEntry, next: LedgerEntry): boolean {
  return (
    next.endedAt !== undefined &&
    last.endedAt !== undefined &&
    last.step === next.step &&
    last.subject === next.subject &&
    last.message === next.message &&
    last.outcome === next.outcome
  );
}
