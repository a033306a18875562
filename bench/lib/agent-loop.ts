import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/ground/base/index.ts";
import { eventually } from "../../test/support/agent.ts";
import { quantile, rounded } from "./statistics.ts";

interface LoopLine {
  readonly at: number;
  readonly maxMs: number;
  readonly late: readonly number[];
  readonly own: readonly number[];
  readonly settled?: number;
}

/** Delays of the event loop: all of them, and the agent's own, without those that a busy machine caused. */
export interface LoopFigures {
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly ownP99Ms: number;
  readonly ownMaxMs: number;
}

/** What the probe in an agent's process tells about its event loop and memory. Agents started later carry the probe. */
export class AgentLoop {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
    process.env["NODELET_LOOP_FILE"] = file;
    process.env["NODE_OPTIONS"] = `--import=${fileURLToPath(new URL("loop-probe.mjs", import.meta.url))}`;
  }

  figures(from: number, to: number): LoopFigures {
    // A line tells of the second before it.
    const within = this.#lines().filter(({ at }) => at >= from && at <= to + 1_000);
    const late = within.flatMap((line) => line.late);
    const own = within.flatMap((line) => line.own);
    return {
      p99Ms: rounded(quantile([0, ...late], 0.99)),
      maxMs: rounded(Math.max(0, ...within.map(({ maxMs }) => maxMs))),
      ownP99Ms: rounded(quantile([0, ...own], 0.99)),
      ownMaxMs: rounded(Math.max(0, ...own)),
    };
  }

  /** Megabytes that the agent holds when its garbage is collected. */
  async settledMb(): Promise<number> {
    const from = systemClock.now();
    writeFileSync(`${this.#file}.settle`, "");
    const bytes = await eventually(
      async () => this.#lines().findLast(({ at, settled }) => at >= from && settled !== undefined)?.settled,
      "the agent's garbage is collected",
      30_000,
    );
    return rounded(bytes / 2 ** 20);
  }

  #lines(): readonly LoopLine[] {
    if (!existsSync(this.#file)) return [];
    const whole = readFileSync(this.#file, "utf8").split("\n").slice(0, -1);
    return whole.map((line) => JSON.parse(line) as LoopLine);
  }
}

/** From here on, `highestMb` tells the most memory that the process has at any moment. */
export function beginHighest(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

export function highestMb(pid: number): number {
  const kb = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return rounded(Number(kb) / 1024);
}
