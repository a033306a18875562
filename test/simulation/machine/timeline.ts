import type { Clock, Timer } from "../../../src/ground/base/index.ts";

/** One run of the agent's process. What a process that was killed had asked for never comes back to it. */
export interface Life {
  readonly number: number;
  readonly startedAt: number;
  isOver: boolean;
}

interface Event {
  readonly at: number;
  readonly order: number;
  /** Whose event it is; undefined for the world's. */
  readonly life: Life | undefined;
  /** Undefined: it was cancelled. What it held on to need not be kept until its time has come. */
  action: (() => void) | undefined;
}

/** Taken before the simulation replaces it. */
const nextMacrotask = setImmediate;
const eventsPerTurn = 256;

/**
 * Virtual time and the order of everything. One event after the other; after each, all promises that it caused are
 * settled before the next one, since a macrotask begins only when no microtask is left. So the order of things follows
 * from the times of the events alone, and those follow from the seed.
 */
export class Timeline {
  /** Milliseconds since the start of the machine. */
  now = 0;
  /** Set by administrators and time servers; only the time of day jumps. */
  wallOffsetMs = Date.UTC(2026, 0, 1);
  /** Whose code runs at present. */
  present: Life | undefined;
  events = 0;
  #order = 0;
  readonly #heap: Event[] = [];

  get waiting(): number {
    return this.#heap.length;
  }

  wallNow(): number {
    return this.now + this.wallOffsetMs;
  }

  after(ms: number, life: Life | undefined, action: () => void): Timer {
    const at = this.now + Math.max(0, ms);
    const event: Event = { at, order: this.#order++, life, action };
    this.#push(event);
    return {
      cancel: () => {
        event.action = undefined;
      },
    };
  }

  /** Lets events happen until the time is reached, or `isDone` says so. */
  runUntil(time: number, isDone: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let isBegun = false;
      let isOver = false;
      let ordered = 0;
      const step = (): void => {
        if (isOver) return;
        try {
          // What the event before has caused is settled by now.
          this.present = undefined;
          if ((isBegun && isDone()) || !this.#happenNext(time)) {
            isOver = true;
            resolve();
          } else if (--ordered === 0) order();
          isBegun = true;
        } catch (error) {
          isOver = true;
          reject(error);
        }
      };
      // Macrotasks that are ordered together follow one another without a turn of Node's own loop and its system call.
      const order = (): void => {
        for (ordered = 0; ordered < eventsPerTurn; ordered++) nextMacrotask(step);
      };
      order();
    });
  }

  /** The next event up to a time; false when there is none. */
  #happenNext(time: number): boolean {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.at > time) {
        this.now = Math.max(this.now, time);
        return false;
      }
      this.#pop();
      const { action } = event;
      if (action === undefined || event.life?.isOver === true) continue;
      this.now = Math.max(this.now, event.at);
      this.present = event.life;
      this.events++;
      action();
      return true;
    }
  }

  /** The clock as one process sees it: its own monotonic time begins with it. */
  clock(life: Life | undefined): Clock {
    const startedAt = life?.startedAt ?? 0;
    return {
      now: () => Math.floor(this.wallNow()),
      monotonic: () => this.now - startedAt,
      // As Node's timers: never at once.
      after: (ms, action) => this.after(Math.max(ms, 1), life, action),
      sleep: (ms, signal) =>
        new Promise<void>((resolve, reject) => {
          if (signal.aborted) {
            reject(signal.reason);
            return;
          }
          const onAbort = (): void => {
            timer.cancel();
            reject(signal.reason);
          };
          const timer = this.after(Math.max(ms, 1), life, () => {
            signal.removeEventListener("abort", onAbort);
            resolve();
          });
          signal.addEventListener("abort", onAbort, { once: true });
        }),
    };
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Event;
      if (!isBefore(event, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[index] = heap[child] as Event;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
