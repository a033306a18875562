import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, type Logger, silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { describeProblem, type IdentifiedPod } from "../../src/ground/model/index.ts";
import type { ManifestReport, SourcePorts } from "../../src/pod/sources/index.ts";

/** Everything a pod source said, and ways to wait for it to say something. */
export class SourceEars {
  readonly deliveries: (readonly IdentifiedPod[])[] = [];
  readonly reports: ManifestReport[] = [];
  readonly logs: string[] = [];
  /** How often the source went to sleep, that is, finished a round of work. */
  rounds = 0;
  /** By how much the source believes it to be later than it is. */
  aheadMs = 0;
  readonly #waiting = new Set<() => void>();

  readonly #clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + this.aheadMs,
    sleep: (ms, signal) => {
      if (ms >= 30) this.#noteRound();
      return systemClock.sleep(ms, signal);
    },
    after: (ms, action) => {
      if (ms >= 30) this.#noteRound();
      return systemClock.after(ms, action);
    },
  };

  readonly #log: Logger = {
    ...silentLogger,
    warn: (message, fields) => this.logs.push(`warn ${message} ${JSON.stringify(fields)}`),
    error: (message, error, fields) => this.logs.push(`error ${message} ${String(error)} ${JSON.stringify(fields)}`),
    debug: (level, message, fields) => this.logs.push(`debug${level} ${message} ${JSON.stringify(fields)}`),
  };

  readonly ports: SourcePorts = {
    clock: this.#clock,
    log: this.#log,
    deliver: async (pods) => {
      this.deliveries.push(pods);
      this.#check();
    },
    reportProblem: (report) => {
      this.reports.push(report);
      this.#check();
    },
  };

  /** Names of the pods last delivered, in order; undefined before the first delivery. */
  get pods(): readonly string[] | undefined {
    return this.deliveries.at(-1)?.map(({ metadata }) => metadata.name);
  }

  /** What was last reported of a file; undefined when nothing was. */
  problemsOf(file: string): readonly string[] | undefined {
    return this.reports.findLast((report) => report.file === file)?.problems.map(describeProblem);
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (!holds()) return;
        this.#waiting.delete(check);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(check);
        reject(
          new Error(`waited in vain until ${what}; pods: ${this.pods?.join(", ")}; logs:\n${this.logs.join("\n")}`),
        );
      }, 10_000);
      this.#waiting.add(check);
    });
  }

  /** Waits until the source has looked at everything again. */
  async untilNextRounds(count: number): Promise<void> {
    const wanted = this.rounds + count;
    await this.until(`${count} more rounds`, () => this.rounds >= wanted);
  }

  #noteRound(): void {
    this.rounds++;
    setImmediate(() => this.#check());
  }

  #check(): void {
    for (const check of [...this.#waiting]) check();
  }
}

export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "nodelet-sources-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A good manifest. */
export function manifest(name: string, image = "busybox:1"): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  containers:
  - name: main
    image: ${image}
`;
}
