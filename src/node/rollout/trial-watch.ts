import { type Clock, Pause } from "../../ground/base/index.ts";
import type { ConfigKeeper } from "./config-keeper.ts";
import { canRollBack, judge, patienceOf } from "./decide.ts";
import type { TrialGuard } from "./trial-guard.ts";

const lookEveryMs = 1_000;

/**
 * Looks at the agent while a configuration is being tried, or while it is not known whether one that was taken back was
 * to blame; otherwise sleeps. Lives as long as a turn.
 */
export class TrialWatch {
  readonly #keeper: ConfigKeeper;
  readonly #clock: Clock;
  readonly #pause: Pause;
  readonly #guard: Pick<TrialGuard, "beat" | "release"> | undefined;
  /** What is missing, at which stage of the start, and since when on the monotonic scale. */
  #missing: { readonly what: string; readonly stage: string | undefined; readonly since: number } | undefined;
  #watched: string | undefined;
  #wasTrial = false;

  constructor(keeper: ConfigKeeper, clock: Clock, guard?: Pick<TrialGuard, "beat" | "release">) {
    this.#keeper = keeper;
    this.#clock = clock;
    this.#pause = new Pause(clock);
    this.#guard = guard;
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = this.#keeper.changed.on(() => this.#pause.cutShort());
    try {
      while (!signal.aborted) {
        const isBusy = await this.#look();
        await this.#pause.wait(isBusy ? lookEveryMs : Number.POSITIVE_INFINITY, signal);
      }
    } finally {
      stop();
    }
  }

  /** Whether there is reason to look again soon. */
  async #look(): Promise<boolean> {
    const { state, running } = this.#keeper;
    const { trial, good } = state;
    const isTrial = trial !== undefined && trial.version === running.id;
    // One trial after the other in the same turn has changed nothing that a restart takes: what is missing is so since then.
    if (this.#watched !== running.id && !(isTrial && this.#wasTrial)) this.#missing = undefined;
    this.#watched = running.id;
    this.#wasTrial = isTrial;
    if (isTrial) {
      // Without anything to go back to, a process that is stuck is for whoever supervises it.
      if (canRollBack(state)) this.#guard?.beat(trial);
      const missing = this.#miss(trial.needs);
      const verdict = judge(trial, { elapsedMs: running.elapsedMs, missing });
      if (verdict.verdict === "good") await this.#keeper.graduate();
      else if (verdict.verdict === "back") await this.#keeper.rollBack(verdict.kind, verdict.why);
      return true;
    }
    this.#guard?.release();
    const doubts = state.refused.filter(({ doubt }) => doubt !== "none");
    if (doubts.length === 0 || good === undefined || good.version !== running.id) return false;
    const missing = this.#miss(good.needs);
    const isShared = doubts.some(({ doubt }) => doubt === "shared");
    if (missing === undefined) await this.#keeper.showDoubts(isShared ? "works again" : "works at once");
    else if (!isShared && missing.forMs >= patienceOf({ forMs: this.#keeper.trialMs })) {
      await this.#keeper.showDoubts("does not work");
    }
    return true;
  }

  #miss(needs: readonly string[]): { readonly what: string; readonly forMs: number } | undefined {
    const now = this.#clock.monotonic();
    const what = this.#keeper.running.missing(needs);
    if (what === undefined) {
      this.#missing = undefined;
      return undefined;
    }
    const { stage } = this.#keeper.running;
    // An agent that gets on with its start is slow, not stuck.
    const since = this.#missing?.stage === stage ? this.#missing?.since : undefined;
    this.#missing = { what, stage, since: since ?? now };
    return { what, forMs: now - this.#missing.since };
  }
}
