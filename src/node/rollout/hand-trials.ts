import { explain, messageOf } from "../../ground/base/index.ts";
import { configDifferences, type SettingChange } from "../../ground/config/index.ts";
import type { ConfigChanges } from "./changes.ts";
import * as decide from "./decide.ts";
import { type AcceptedTrial, RolloutRefusal } from "./ports.ts";
import type { LoadedVersion } from "./running.ts";
import { readTrialFile, type TrialFile } from "./trial-file.ts";

/** Configurations that a person tries, and says what is to become of them. Whoever calls lets one thing happen at a time. */
export class HandTrials {
  readonly #changes: ConfigChanges;

  constructor(changes: ConfigChanges) {
    this.#changes = changes;
  }

  /** Looks whether a file can be tried out, until it is kept or its time is over. `begin` has to wait for its turn. */
  async tryOut(file: TrialFile): Promise<AcceptedTrial> {
    const { settings, ports, record } = this.#changes;
    const active = this.#readyActive();
    const found = await readTrialFile(file, settings.argv, ports.io);
    const changes = configDifferences(active.config, found.config);
    const effect = await this.#effectOf(found);
    // What became of it the last time is over, for whoever looks from now on.
    const refused = record.state.refused.filter((each) => each.version !== found.version.id);
    record.state = { ...record.state, refused };
    return { version: found.version, changes, effect, begin: () => this.#begin(found, file.forMs) };
  }

  /** What the trial would take the place of. */
  #readyActive(): LoadedVersion {
    const { running, state } = this.#changes;
    const { active, turn } = running;
    if (active === undefined || turn === undefined) throw new RolloutRefusal("the agent is restarting");
    if (state.trial?.mustBeKept === true) {
      throw new RolloutRefusal('a trial is under way; say "nodelet config keep" or "nodelet config back" first');
    }
    return active;
  }

  async #effectOf(found: LoadedVersion): Promise<"at once" | "restart"> {
    const effect = await this.#changes.effectOf(this.#readyActive().config, found.config);
    if (typeof effect === "object") throw new RolloutRefusal(effect.refused);
    return effect;
  }

  /** What would be different with the file in place of that of --config. */
  async compare(file: Omit<TrialFile, "forMs">): Promise<readonly SettingChange[]> {
    const { running, settings, ports } = this.#changes;
    if (running.active === undefined) throw new RolloutRefusal("the agent is restarting");
    const { config } = await readTrialFile(file, settings.argv, ports.io);
    return configDifferences(running.active.config, config);
  }

  async #begin(found: LoadedVersion, forMs: number): Promise<void> {
    const { ports, record, needs, state } = this.#changes;
    try {
      // Whoever asked takes his time to read the answer: by now the agent may run with something else.
      const effect = await this.#effectOf(found);
      const begun = { now: ports.clock.now(), forMs, mustBeKept: true, needs, effect };
      const next = decide.beginTrial(state, found.version.id, begun);
      const cause = `by hand, for ${forMs / 1000} s`;
      await this.#changes.proceed(next, found, { effect, cause, what: "trial" });
    } catch (error) {
      // Nobody proposes it again: whoever looks what became of it finds why.
      this.#changes.unsaved = undefined;
      const refusal = { version: found.version.id, kind: "not kept", why: messageOf(error) } as const;
      record.state = decide.refuseVersion(record.state, { ...refusal, now: ports.clock.now() });
      throw error;
    }
  }

  /** The configuration that is being tried is to stay. */
  async keep(): Promise<void> {
    const { running, record, state: before, wanted } = this.#changes;
    const { trial } = before;
    if (trial === undefined || running.id !== trial.version) throw new RolloutRefusal("nothing is being tried");
    const missing = running.missing(trial.needs);
    if (missing !== undefined) throw new RolloutRefusal(`it does not work yet: ${missing}`);
    if (trial.mustBeKept) record.state = { ...before, kept: { version: trial.version, insteadOf: wanted } };
    this.#changes.becomeGood(trial.version, trial.mustBeKept ? "kept" : "good", "said by hand");
    try {
      await record.save();
    } catch (error) {
      // The next process would take it back: who said that it stays must know.
      record.state = before;
      throw new RolloutRefusal(`it can't be saved: ${explain(error)}`, { cause: error });
    }
    await this.#changes.prune();
  }

  /** Takes the trial back before its time. */
  async back(): Promise<void> {
    if (this.#changes.state.trial?.mustBeKept !== true) throw new RolloutRefusal("nothing is being tried by hand");
    await this.#changes.rollBack("not kept", "taken back by hand");
  }
}
