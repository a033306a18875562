import {
  isAbort,
  LinkedSignal,
  messageOf,
  never,
  TaskScope,
  unlessAborted,
  withDeadline,
} from "../../ground/base/index.ts";
import type { IdentifiedPod, PodUid, RecordNodeEvent } from "../../ground/model/index.ts";
import { type EndPodsPorts, endPods } from "./end-pods.ts";
import { type ShutdownGroup, totalSeconds } from "./plan.ts";
import { type ShutdownReport, shutdownReport } from "./report.ts";
import type { ShutdownProgress } from "./shutdown-progress.ts";
import { type FoundShutdown, noShutdown, type ShutdownState, type ShutdownStateFile } from "./state-file.ts";

/** Port: the logind of the machine, while the connection to it lasts. */
export interface ShutdownLogind {
  maxDelayMs(): Promise<number>;
  raiseMaxDelay(seconds: number): Promise<void>;
  isPreparing(): Promise<boolean>;
  inhibit(): Promise<Disposable | undefined>;
  onPrepareForShutdown(listener: (begins: boolean) => void): void;
  onRestart(listener: () => void): void;
  onEnd(listener: (error: Error) => void): void;
  close(): void;
}

export interface GracefulShutdownPorts extends EndPodsPorts {
  readonly progress: ShutdownProgress;
  readonly state: Pick<ShutdownStateFile, "load" | "save">;
  /** Why there can be no logind; undefined: there may be one. */
  readonly logindAbsence: () => Promise<string | undefined>;
  readonly openLogind: (signal: AbortSignal) => Promise<ShutdownLogind>;
  readonly recordNodeEvent: RecordNodeEvent;
  /** Starts a pod again that was ended for a shutdown which does not come. Only called for pods that nobody replaces. */
  readonly bringBack: (pod: IdentifiedPod) => void;
  readonly mayComeBack: (pod: IdentifiedPod) => boolean;
  /** For metrics. */
  readonly onState: (state: ShutdownState) => void;
}

/** What was killed at the very end of its time has still to be told to the API server. */
const reserveMs = 10_000;
/** logind cuts off without a word; we would rather say what was cut. */
const marginMs = 500;
const reconnectMs = 1_000;
const longestPauseMs = 30_000;
/** A disk that does not answer must hold up neither pods nor the machine. */
const longestSaveMs = 1_000;
const delayTries = 5;
const firstDelayWaitMs = 100;
/** How long pods wait with their start for the word that the machine is not about to be turned off. */
const firstLookMs = 5_000;

type Lock =
  | { readonly step: "none"; readonly problem: string }
  | { readonly step: "held"; readonly lock: Disposable; readonly allowedMs: number }
  /** Given back, so that the machine can turn off. */
  | { readonly step: "released" };

/**
 * Holds up the shutdown of the machine until its pods have ended.
 *
 *   no lock -> lock held -> (the machine is to turn off) pods end -> lock released
 *                  ^----------- (it is not, after all) -------------------'
 *
 * The lock belongs to the process and outlives the connection to the bus.
 */
export class GracefulShutdown {
  readonly #groups: readonly ShutdownGroup[];
  readonly #ports: GracefulShutdownPorts;
  #lock: Lock = { step: "none", problem: "the agent has not asked logind yet" };
  #ending: { readonly cancel: AbortController; readonly ended: Map<PodUid, IdentifiedPod> } | undefined;
  #firstLook: (() => void) | undefined;
  /** As the agent found it when it started. */
  #found: FoundShutdown = noShutdown;
  /** How often logind has told that a shutdown begins or is called off. */
  #told = 0;
  /** One after the other: what is known last stays on the disk. */
  #saved: Promise<void> = Promise.resolve();

  constructor(groups: readonly ShutdownGroup[], ports: GracefulShutdownPorts) {
    this.#groups = groups;
    this.#ports = ports;
  }

  /** Resolves when it is known whether the machine is about to be turned off, or when nobody says so. */
  async start(scope: TaskScope): Promise<void> {
    const { clock, log, state, onState } = this.#ports;
    const last = await state.load().catch((error: unknown) => {
      log.error("Failed to load graceful shutdown state", error);
      return noShutdown;
    });
    this.#found = last;
    onState(last);
    const looked = new Promise<void>((resolve) => {
      const timer = clock.after(firstLookMs, resolve);
      this.#firstLook = () => {
        timer.cancel();
        resolve();
      };
    });
    scope.spawn("graceful shutdown", (signal) => this.#run(signal));
    await looked;
    const wasCut = last.startedAt !== undefined && last.endedAt === undefined;
    if (wasCut && !this.#ports.progress.isUnderWay)
      log.warn("The last shutdown of the node was cut off before all pods had ended");
  }

  /** What would happen if the machine were to turn off now. */
  report(): ShutdownReport {
    const { activePods, progress } = this.#ports;
    const lock = this.#lock;
    return shutdownReport(this.#groups, activePods(), {
      isUnderWay: progress.isUnderWay,
      allowedSeconds: lock.step === "held" ? lock.allowedMs / 1000 : undefined,
      problem: lock.step === "none" ? lock.problem : undefined,
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    await using scope = new TaskScope(signal);
    let pauseMs = reconnectMs;
    try {
      for (;;) {
        try {
          await this.#follow(scope, signal);
        } catch (error) {
          if (isAbort(error, signal)) throw error;
          this.#failed(messageOf(error));
        }
        this.#firstLook?.();
        await this.#ports.clock.sleep(pauseMs, signal);
        // A machine that never had a logind need not be asked for it all the time.
        pauseMs = this.#lock.step === "none" ? Math.min(2 * pauseMs, longestPauseMs) : reconnectMs;
      }
    } finally {
      this.#firstLook?.();
      this.#release({ step: "none", problem: "the agent has stopped" });
    }
  }

  /** A problem is said once; the lock that we have stays. */
  #failed(problem: string): void {
    if (this.#lock.step !== "none") {
      this.#ports.log.debug(1, "Lost logind; asking again", { problem });
    } else if (this.#lock.problem !== problem) {
      this.#ports.log.warn("Graceful node shutdown is off: logind cannot be asked to wait for pods", { problem });
      this.#lock = { step: "none", problem };
    }
  }

  /** Listens to logind for as long as the connection lasts. */
  async #follow(scope: TaskScope, signal: AbortSignal): Promise<void> {
    const absence = await this.#ports.logindAbsence();
    if (absence !== undefined) throw new Error(absence);
    const logind = await this.#ports.openLogind(signal);
    try {
      // Before anything is asked: what is told meanwhile counts.
      const over = new Promise<void>((resolve) => {
        logind.onEnd(() => resolve());
        logind.onRestart(() => resolve());
      });
      logind.onPrepareForShutdown((begins) => {
        this.#told++;
        if (begins) this.#begin(this.#ports.clock.now(), scope);
        else this.#cancel(logind, scope);
      });
      await this.#hold(logind, signal);
      const told = this.#told;
      const isPreparing = await logind.isPreparing();
      // What was told meanwhile is newer than the answer.
      if (told === this.#told) {
        if (isPreparing) this.#begin(this.#earlierStart(), scope);
        else if (this.#ending !== undefined) this.#cancel(logind, scope);
        // Called off while nobody listened: the next one is another.
        else this.#found = noShutdown;
      }
      this.#firstLook?.();
      await unlessAborted(over, signal);
    } finally {
      logind.close();
    }
  }

  async #hold(logind: ShutdownLogind, signal: AbortSignal): Promise<void> {
    const allowedMs = await this.#allowedMs(logind, signal);
    const lock = await logind.inhibit();
    if (lock === undefined) return;
    if (signal.aborted) {
      // Nobody would ever give it back.
      lock[Symbol.dispose]();
      throw signal.reason;
    }
    if (this.#lock.step === "released" && this.#ending !== undefined) {
      // It comes too late: this shutdown waits for nothing here any more, and would for this until logind's patience ends.
      lock[Symbol.dispose]();
      return;
    }
    if (this.#lock.step !== "held") this.#ports.log.info("Shutdowns of this machine wait for its pods", { allowedMs });
    this.#release({ step: "held", lock, allowedMs });
  }

  #release(next: Lock): void {
    if (this.#lock.step === "held") this.#lock.lock[Symbol.dispose]();
    this.#lock = next;
  }

  /** For how long logind waits for us; raised where it is too short. */
  async #allowedMs(logind: ShutdownLogind, signal: AbortSignal): Promise<number> {
    const { clock, log } = this.#ports;
    const neededMs = totalSeconds(this.#groups) * 1000;
    const wantedMs = this.#longestMs;
    let allowedMs = await logind.maxDelayMs();
    if (allowedMs >= wantedMs) return allowedMs;
    let problem = `it still is after ${delayTries} looks`;
    try {
      await logind.raiseMaxDelay(Math.ceil(wantedMs / 1000));
      for (let tries = 0; tries < delayTries && allowedMs < wantedMs; tries++) {
        await clock.sleep(firstDelayWaitMs * 2 ** tries, signal);
        allowedMs = await logind.maxDelayMs();
      }
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      problem = messageOf(error);
    }
    if (allowedMs < neededMs) {
      log.warn("logind's InhibitDelayMaxSec is less than the node's grace periods; pods will be cut off", {
        allowedMs,
        neededMs,
        problem,
      });
    }
    return allowedMs;
  }

  #begin(startedAt: number, scope: TaskScope): void {
    if (this.#ending !== undefined) return;
    const { progress, recordNodeEvent, log } = this.#ports;
    const ending = { cancel: new AbortController(), ended: new Map<PodUid, IdentifiedPod>() };
    this.#ending = ending;
    log.info("The machine is about to turn off");
    const message = "Shutdown manager detected shutdown event";
    recordNodeEvent({ type: "Normal", reason: "Shutdown", message });
    progress.set(true);
    scope.spawn("end pods", async (signal) => {
      using bounded = new LinkedSignal(signal, ending.cancel.signal);
      try {
        await this.#end(startedAt, ending.ended, bounded.signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (ending.cancel.signal.aborted) {
          // Another may have begun meanwhile, and is what is to be known.
          if (this.#ending === undefined) await this.#save({ startedAt, endedAt: this.#ports.clock.now() });
        } else {
          log.error("Could not end the pods; the machine turns off without", error);
          this.#release({ step: "released" });
        }
      }
    });
  }

  async #end(startedAt: number, ended: Map<PodUid, IdentifiedPod>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const allowedMs = this.#lock.step === "held" ? this.#lock.allowedMs - marginMs : Number.POSITIVE_INFINITY;
    const deadline = clock.monotonic() + Math.min(this.#longestMs, allowedMs) - (clock.now() - startedAt);
    await this.#save({ startedAt, endedAt: undefined });
    await endPods(this.#groups, deadline, ended, this.#ports, signal);
    await this.#save({ startedAt, endedAt: clock.now() });
    this.#release({ step: "released" });
  }

  get #longestMs(): number {
    return totalSeconds(this.#groups) * 1000 + reserveMs;
  }

  /** An agent that was started anew while the machine turns off goes on with the time that is left. */
  #earlierStart(): number {
    const { startedAt, endedAt, isOfEarlierBoot } = this.#found;
    const now = this.#ports.clock.now();
    const isThisOne = !isOfEarlierBoot && startedAt !== undefined && endedAt === undefined && startedAt <= now;
    return isThisOne && now - startedAt < this.#longestMs ? startedAt : now;
  }

  async #save(state: ShutdownState): Promise<void> {
    this.#ports.onState(state);
    const { clock, state: file } = this.#ports;
    const late = (): Error => new Error(`not done within ${longestSaveMs / 1000} s`);
    const saved = this.#saved.then(() => file.save(state));
    this.#saved = saved.catch(() => {});
    try {
      await withDeadline(clock, longestSaveMs, late, never, (bounded) => unlessAborted(saved, bounded));
    } catch (error) {
      this.#ports.log.error("Failed to store graceful shutdown state", error);
    }
  }

  #cancel(logind: ShutdownLogind, scope: TaskScope): void {
    const { progress, recordNodeEvent, log, bringBack, mayComeBack } = this.#ports;
    const message = "Shutdown manager detected shutdown cancellation";
    recordNodeEvent({ type: "Normal", reason: "Shutdown", message });
    const ending = this.#ending;
    this.#ending = undefined;
    // The next one is another.
    this.#found = noShutdown;
    ending?.cancel.abort();
    progress.set(false);
    const pods = [...(ending?.ended.values() ?? [])].filter(mayComeBack);
    log.info("The machine does not turn off after all", { ended: ending?.ended.size ?? 0, comeBack: pods.length });
    for (const pod of pods) bringBack(pod);
    scope.spawn("take the lock again", async (signal) => {
      try {
        if (this.#lock.step !== "held") await this.#hold(logind, signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        // Asked again from the beginning.
        this.#release({ step: "none", problem: messageOf(error) });
        logind.close();
      }
    });
  }
}
