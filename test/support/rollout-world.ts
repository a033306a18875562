import { isAbort, silentLogger } from "../../src/ground/base/index.ts";
import { parseFile } from "../../src/ground/config/files/parse-file.ts";
import type { AgentConfig, ConfigIo } from "../../src/ground/config/index.ts";
import { decodeYaml } from "../../src/ground/model/index.ts";
import { ConfigKeeper } from "../../src/node/rollout/config-keeper.ts";
import { readOldNotes } from "../../src/node/rollout/old-layout.ts";
import { RolloutRefusal, type Turn } from "../../src/node/rollout/ports.ts";
import { RolloutStore, type StoreDisk } from "../../src/node/rollout/store.ts";
import { TrialWatch } from "../../src/node/rollout/trial-watch.ts";
import { type ProcessOutcome, runTurns, type TurnOutcome } from "../../src/node/rollout/turns.ts";
import { type ReadVersion, readVersion } from "../../src/node/rollout/version.ts";
import { memoryIo } from "./config-io.ts";
import { FakeClock } from "./fake-clock.ts";
import { fileHeader } from "./load-config.ts";

// Loaded when first needed, which takes real time; nothing here waits for that.
await Promise.all([parseFile(new TextEncoder().encode("a: 1")), decodeYaml("a: 1")]);

/** The machine has lost its power: nothing of the process is left but what is on disk. */
export class PowerLoss extends Error {
  override readonly name = "PowerLoss";
}

/** A disk that may lose its power within a write, which is then on it, not on it, or torn. */
export class TornDisk implements StoreDisk {
  readonly files = new Map<string, string>();
  readonly #random: () => number;
  /** Writes and removals until the power fails. */
  failsAfter = Number.POSITIVE_INFINITY;
  isDead = false;
  isFull = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  async read(path: string): Promise<string | undefined> {
    this.#refuseDead();
    return this.files.get(path);
  }

  async saveDurably(path: string, text: string): Promise<void> {
    this.#refuseDead();
    if (this.isFull) throw new Error("ENOSPC: no space left on device");
    if (this.failsAfter-- > 0) return void this.files.set(path, text);
    const fate = this.#random();
    if (fate < 1 / 3) this.files.set(path, text);
    else if (fate < 2 / 3) this.files.set(path, text.slice(0, Math.floor(text.length * this.#random())));
    this.#die();
  }

  async list(directory: string): Promise<readonly string[]> {
    this.#refuseDead();
    const prefix = `${directory}/`;
    const inside = [...this.files.keys()].filter((path) => path.startsWith(prefix));
    return [...new Set(inside.map((path) => path.slice(prefix.length).split("/")[0] ?? ""))];
  }

  async remove(path: string): Promise<void> {
    this.#refuseDead();
    if (this.failsAfter-- > 0 || this.#random() < 0.5) this.files.delete(path);
    if (this.failsAfter < 0) this.#die();
  }

  async removeDirectory(directory: string): Promise<void> {
    this.#refuseDead();
    for (const path of [...this.files.keys()].filter((each) => each.startsWith(`${directory}/`)))
      await this.remove(path);
  }

  #die(): never {
    this.isDead = true;
    throw new PowerLoss("the power is gone");
  }

  #refuseDead(): void {
    if (this.isDead) throw new PowerLoss("the power is gone");
  }
}

/** What a configuration does to the agent that runs with it. */
export type Character = "works" | "cannot start" | "loses the runtime" | "kills the process";

/** The machine of one node: its files, its disk, its agent's process, started again whenever it ends by itself. */
export class RolloutWorld {
  readonly clock = new FakeClock();
  readonly disk: TornDisk;
  readonly events: string[] = [];
  /** The runtime is down, whatever the configuration. */
  runtimeIsDown = false;
  file = `${fileHeader}maxPods: 100\n`;
  /** Why the file can't be read. */
  unreadable: Error | undefined;
  /** Directories that are there. */
  directories: readonly string[] = [];
  /** A place on a file system that never answers. */
  deadPlace: string | undefined;
  /** What the start of an agent goes through, and how long it takes for each. */
  slowStart: { readonly stages: readonly string[]; readonly eachMs: number } = { stages: [], eachMs: 1 };
  /** Turns that the agents have begun. */
  turns = 0;
  /** Flags that the next process has. */
  flags: readonly string[] = [];
  readonly #isFollowed: boolean;
  #process: SimulatedProcess | undefined;
  processes = 0;

  constructor(random: () => number, isFollowed = true) {
    this.disk = new TornDisk(random);
    this.#isFollowed = isFollowed;
  }

  get argv(): readonly string[] {
    return [
      "--kubeconfig=/etc/kubeconfig",
      "--config=/etc/kubelet.yaml",
      ...(this.#isFollowed ? ["--dynamic-config-dir=/store"] : []),
      ...this.flags,
    ];
  }

  get io(): ConfigIo {
    return memoryIo(
      {},
      {
        readFile: async () => {
          if (this.unreadable !== undefined) throw this.unreadable;
          return new TextEncoder().encode(this.file);
        },
        kindOf: async (path) => {
          if (path === this.deadPlace) await new Promise<never>(() => {});
          if (this.directories.includes(path)) return "directory";
          throw new Error(`ENOENT: ${path}`);
        },
      },
    );
  }

  get config(): AgentConfig | undefined {
    return this.#process?.config;
  }

  get keeper(): ConfigKeeper {
    if (this.#process === undefined) throw new Error("no process runs");
    return this.#process.keeper;
  }

  get isUp(): boolean {
    return this.#process !== undefined && this.#process.outcome === undefined;
  }

  get outcome(): ProcessOutcome | "killed" | undefined {
    return this.#process?.outcome;
  }

  characterOf(config: AgentConfig): Character {
    if (config.kubelet.port === 666) return "cannot start";
    if (config.kubelet.containerRuntimeEndpoint.includes("wrong")) return "loses the runtime";
    return config.kubelet.maxPods === 13 ? "kills the process" : "works";
  }

  async start(): Promise<void> {
    this.disk.isDead = false;
    this.disk.failsAfter = Number.POSITIVE_INFINITY;
    await this.startWithFailingDisk();
  }

  /** As `start`, with a disk that may fail within it. */
  async startWithFailingDisk(): Promise<void> {
    this.processes++;
    this.#process = new SimulatedProcess(this, this.argv, this.#isFollowed);
    await this.settle();
  }

  /** kill -9, or the power of the whole machine. */
  async kill(): Promise<void> {
    const dying = this.#process;
    if (dying === undefined) return;
    this.disk.isDead = true;
    await dying.end("killed");
    this.disk.isDead = false;
  }

  async stop(): Promise<void> {
    await this.#process?.end("stop");
  }

  async write(file: string): Promise<void> {
    this.file = file;
    await this.look().catch(ignorePowerLoss);
  }

  /** What whoever watches the files does when they change, and from time to time. */
  async look(): Promise<void> {
    const process = this.#process;
    if (process === undefined || process.outcome !== undefined) return;
    try {
      await process.keeper.proposeFiles(await process.read());
    } finally {
      await this.settle();
    }
  }

  /** Lets time pass; what died is started again, as a supervisor does. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 10_000) {
      await this.clock.advance(Math.min(10_000, ms - passed));
      await this.settle();
      if (this.disk.isDead) await this.kill();
      if (!this.isUp && this.outcome !== undefined) await this.start();
    }
  }

  async settle(): Promise<void> {
    await this.clock.advance(0);
    for (let round = 0; round < 8; round++) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function ignorePowerLoss(error: unknown): void {
  if (!(error instanceof PowerLoss) && !(error instanceof Error && error.cause instanceof PowerLoss)) throw error;
}

/** Whoever watches the files says so in the log, and looks again later. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof RolloutRefusal)) ignorePowerLoss(error);
}

class SimulatedProcess {
  readonly keeper: ConfigKeeper;
  readonly #world: RolloutWorld;
  readonly #argv: readonly string[];
  readonly #isFollowed: boolean;
  readonly #end = new AbortController();
  readonly #done: Promise<void>;
  config: AgentConfig | undefined;
  outcome: ProcessOutcome | "killed" | undefined;

  constructor(world: RolloutWorld, argv: readonly string[], isFollowed: boolean) {
    this.#world = world;
    this.#argv = argv;
    this.#isFollowed = isFollowed;
    const store = new RolloutStore("/store", world.disk);
    const oldNotes = () => readOldNotes("/store", world.disk);
    const ports = { store, oldNotes, io: world.io, clock: world.clock, log: silentLogger };
    this.keeper = new ConfigKeeper({ argv, isFollowed, trialMs: 60_000, assignedBy: ["flag", "node"] }, ports);
    this.#done = this.#run();
  }

  read(): Promise<ReadVersion> {
    return readVersion(this.#argv, { source: { from: "files" }, words: [] }, this.#world.io);
  }

  async end(how: "killed" | "stop"): Promise<void> {
    this.#end.abort(how);
    await this.#world.settle();
    await this.#done;
  }

  async #run(): Promise<void> {
    try {
      await this.keeper.open();
      this.outcome = await runTurns(this.keeper, await this.read(), (start) => this.#turn(start.config));
    } catch (error) {
      if (!(error instanceof PowerLoss) && error !== "killed") throw error;
      this.outcome = "killed";
    }
  }

  async #turn(config: AgentConfig): Promise<TurnOutcome> {
    const world = this.#world;
    const { clock } = world;
    this.config = config;
    world.turns++;
    if (world.characterOf(config) === "cannot start") return { kind: "failed", error: new Error("the port is in use") };
    const another = new AbortController();
    const begunAt = clock.monotonic();
    const slowStage = (): string | undefined => {
      const { stages, eachMs } = world.slowStart;
      return stages[Math.floor((clock.monotonic() - begunAt) / eachMs)];
    };
    const turn: Turn = {
      checks: () => new Map([["runtime", this.#hasRuntime() ? "ok" : { reason: "it does not answer" }]]),
      stage: () => slowStage() ?? (this.#hasRuntime() ? undefined : "runtime"),
      apply: (next) => {
        this.config = next;
      },
      beginAnew: () => another.abort(),
      onReport: () => {},
      api: undefined,
      recordEvent: ({ reason, message }) => world.events.push(`${reason} ${message}`),
    };
    this.keeper.attend(turn);
    // Whoever watches the files looks at them at the begin of every turn.
    if (this.#isFollowed) void this.keeper.proposeFiles(await this.read()).catch(ignoreRefusal);
    const trials = new TrialWatch(this.keeper, clock);
    const stopWatch = new AbortController();
    const watching = trials.run(stopWatch.signal).catch((error: unknown) => {
      if (!(error instanceof PowerLoss) && !isAbort(error, stopWatch.signal)) throw error;
    });
    const dies = world.characterOf(config) === "kills the process";
    const death = dies ? clock.after(20_000, () => this.#end.abort("killed")) : undefined;
    await new Promise<void>((resolve) => {
      another.signal.addEventListener("abort", () => resolve());
      this.#end.signal.addEventListener("abort", () => resolve());
      if (this.#end.signal.aborted) resolve();
    });
    death?.cancel();
    stopWatch.abort(new DOMException("over", "AbortError"));
    await watching;
    if (this.#end.signal.reason === "killed") throw "killed";
    return { kind: this.#end.signal.aborted ? "stop" : "begin anew" };
  }

  #hasRuntime(): boolean {
    const { config } = this;
    return (
      !this.#world.runtimeIsDown && config !== undefined && this.#world.characterOf(config) !== "loses the runtime"
    );
  }
}
