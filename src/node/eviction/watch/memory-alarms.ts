import type { MemoryAlarm } from "../../../connections/host/index.ts";
import { type Logger, messageOf } from "../../../ground/base/index.ts";
import type { EvictionThreshold } from "../../../ground/config/index.ts";
import { wantedAmount } from "../plan/threshold-amounts.ts";
import type { PressureSources } from "./ports.ts";
import type { Reading } from "./signal-reader.ts";

type MemorySignal = "memory.available" | "allocatableMemory.available";

type AlarmState =
  | { readonly type: "open"; readonly alarm: MemoryAlarm; setTo: number | undefined }
  /** The kernel can't, or there is no such cgroup yet. */
  | { readonly type: "none"; readonly askAgainAt: number };

const setAgainBytes = 16 * 2 ** 20;
const askAgainMs = 60_000;

/** Has the kernel tell when memory gets short, so that nobody has to look all the time. */
export class MemoryAlarms {
  readonly #ports: {
    readonly sources: Pick<PressureSources, "memoryAlarm">;
    readonly log: Logger;
    readonly tell: () => void;
  };
  readonly #alarms = new Map<MemorySignal, AlarmState>();
  #isOver = false;

  constructor(ports: {
    readonly sources: Pick<PressureSources, "memoryAlarm">;
    readonly log: Logger;
    readonly tell: () => void;
  }) {
    this.#ports = ports;
  }

  /** Sets the alarms by what was last seen. */
  async follow(
    { memory, observations }: Reading,
    thresholds: readonly EvictionThreshold[],
    pathOf: (signal: MemorySignal) => string,
    now: number,
  ): Promise<void> {
    for (const [signal, { usageBytes, workingSetBytes }] of memory) {
      const observed = observations.get(signal);
      const own = thresholds.filter((threshold) => threshold.signal === signal);
      if (observed === undefined || own.length === 0) continue;
      const state = await this.#open(signal, pathOf(signal), now);
      if (state.type === "none" || !state.alarm.isSetByUsage) continue;
      // The next one to be reached; those that are met are looked at all the time anyway.
      const wanted = own.map((threshold) => wantedAmount(threshold, observed));
      const next = Math.max(...wanted.filter((amount) => amount <= observed.available));
      if (!Number.isFinite(next)) continue;
      const at = observed.capacity - next + (usageBytes - workingSetBytes);
      if (state.setTo !== undefined && Math.abs(state.setTo - at) < setAgainBytes) continue;
      await this.#set(signal, state, at, now);
    }
  }

  async #open(signal: MemorySignal, path: string, now: number): Promise<AlarmState> {
    const known = this.#alarms.get(signal);
    if (known !== undefined && (known.type === "open" || now < known.askAgainAt)) return known;
    const state = await this.#tryToOpen(path, now);
    this.#alarms.set(signal, state);
    if (this.#isOver) this.close();
    return state;
  }

  async #tryToOpen(path: string, now: number): Promise<AlarmState> {
    try {
      const alarm = await this.#ports.sources.memoryAlarm(path, this.#ports.tell);
      return { type: "open", alarm, setTo: undefined };
    } catch (error) {
      this.#ports.log.debug(2, "The kernel does not tell when memory gets short; it is looked at", {
        cgroup: path,
        reason: messageOf(error),
      });
      return { type: "none", askAgainAt: now + askAgainMs };
    }
  }

  async #set(
    signal: MemorySignal,
    state: Extract<AlarmState, { type: "open" }>,
    at: number,
    now: number,
  ): Promise<void> {
    try {
      await state.alarm.set(at);
      state.setTo = at;
    } catch (error) {
      this.#ports.log.debug(2, "Could not set an alarm for memory", { signal, reason: messageOf(error) });
      state.alarm[Symbol.dispose]();
      this.#alarms.set(signal, { type: "none", askAgainAt: now + askAgainMs });
    }
  }

  close(): void {
    this.#isOver = true;
    for (const state of this.#alarms.values()) if (state.type === "open") state.alarm[Symbol.dispose]();
    this.#alarms.clear();
  }
}
