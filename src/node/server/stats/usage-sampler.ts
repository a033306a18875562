import type { CgroupReader, CpuUsage, MemoryUsage, Pressures } from "../../../connections/host/index.ts";
import type { Clock } from "../../../ground/base/index.ts";

/** What a cgroup used at one moment, and how fast. */
export interface UsageSample {
  /** Empty: the runtime told, because the cgroup can't be found. */
  readonly path: string;
  /** Wall-clock milliseconds. */
  readonly at: number;
  readonly cpu: CpuUsage | undefined;
  /** Over the time since the sample before; undefined: this is the first. */
  readonly nanoCores: number | undefined;
  readonly memory: MemoryUsage | undefined;
  /** undefined: nobody wants to know. Its parts are undefined where the kernel does not measure them. */
  readonly pressures: Pressures | undefined;
}

const unmeasured: Pressures = { cpu: undefined, memory: undefined, io: undefined };

// A rate over less says more about the moment of asking than about the process.
const shortestRateMs = 200;
const longestRateMs = 10 * 60_000;

/**
 * Takes samples when somebody asks, never by itself. Two samples of the same cgroup give a rate, so the last one of
 * each is remembered for ten minutes.
 */
export class UsageSampler {
  readonly #reader: CgroupReader;
  readonly #clock: Clock;
  readonly #withPressure: boolean;
  readonly #last = new Map<string, Counted>();

  constructor(ports: { readonly cgroups: CgroupReader; readonly clock: Clock }, withPressure: boolean) {
    this.#reader = ports.cgroups;
    this.#clock = ports.clock;
    this.#withPressure = withPressure;
  }

  sample(path: string): UsageSample {
    const { cpu, memory } = this.#reader.usage(path);
    return {
      path,
      at: this.#clock.now(),
      cpu,
      nanoCores: cpu === undefined ? undefined : this.rateOf(path, cpu.usageNanoseconds),
      memory,
      pressures: this.#withPressure ? (this.#reader.pressures(path) ?? unmeasured) : undefined,
    };
  }

  /** Nanoseconds of work per second since the same thing was counted before. */
  rateOf(key: string, usageNanoseconds: number): number | undefined {
    const now = this.#clock.monotonic();
    const before = this.#last.get(key);
    const elapsedMs = before === undefined ? 0 : now - before.at;
    // A counter that went back belongs to another thing of the same name.
    const isUsable = before !== undefined && usageNanoseconds >= before.usageNanoseconds && elapsedMs <= longestRateMs;
    if (isUsable && elapsedMs < shortestRateMs) return before.rate;
    const rate = isUsable ? Math.round(((usageNanoseconds - before.usageNanoseconds) / elapsedMs) * 1000) : undefined;
    this.#last.set(key, { at: now, usageNanoseconds, rate });
    return rate;
  }

  /** Drops what was not asked for in a long time. */
  forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [path, { at }] of this.#last) if (now - at > longestRateMs) this.#last.delete(path);
  }
}

interface Counted {
  readonly at: number;
  readonly usageNanoseconds: number;
  readonly rate: number | undefined;
}
