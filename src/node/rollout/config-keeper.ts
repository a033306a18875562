import { explain, SerialByKey, Topic } from "../../ground/base/index.ts";
import type { SettingChange } from "../../ground/config/index.ts";
import { adoptNotes } from "./adoption.ts";
import { beginTurn, type TurnStart } from "./beginning.ts";
import { ConfigChanges, type KeeperPorts, type KeeperSettings } from "./changes.ts";
import * as decide from "./decide.ts";
import { HandTrials } from "./hand-trials.ts";
import type { AcceptedTrial, RolloutReport, Turn } from "./ports.ts";
import { reportOf } from "./report.ts";
import type { RunningConfig } from "./running.ts";
import type { AssignedVersion, RefusalKind, RolloutState } from "./state.ts";
import type { TrialFile } from "./trial-file.ts";
import { type ConfigVersion, describeSource, type ReadVersion } from "./version.ts";

/**
 * Decides which configuration the agent runs with. A new one is tried, kept when it works and taken back when it does
 * not; every step is on disk before it is made, so that an agent that is killed at any moment begins with one that is
 * known. Lives as long as the process, and attends to one turn of the agent after the other.
 */
export class ConfigKeeper {
  /** Told when the report may have changed. */
  readonly changed = new Topic();
  readonly #settings: KeeperSettings;
  readonly #ports: KeeperPorts;
  readonly #changes: ConfigChanges;
  readonly #hand: HandTrials;
  readonly #serial = new SerialByKey<"state">();
  /** Why what the API wants can't even be read. */
  #syncProblem = "";

  constructor(settings: KeeperSettings, ports: KeeperPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#changes = new ConfigChanges(settings, ports);
    this.#hand = new HandTrials(this.#changes);
  }

  async open(): Promise<void> {
    const { record } = this.#changes;
    await record.open();
    if (this.#ports.store.isBlank) await adoptNotes(this.#changes);
    await this.#heedHungNote();
    const { assigned } = this.state;
    if (assigned === undefined || this.#settings.assignedBy.includes(assigned.by)) return;
    record.state = { ...this.state, assigned: undefined };
  }

  /** A process that got stuck during a trial could only leave a note. */
  async #heedHungNote(): Promise<void> {
    const { store, log } = this.#ports;
    const hung = await store.hungNote();
    if (hung === undefined) return;
    if (this.state.trial?.version === hung.version && decide.canRollBack(this.state)) {
      await this.#changes.takeBack("harmful", hung.why);
    }
    await store.forgetHungNote().catch((error: unknown) => log.error("A note can't be removed", error));
  }

  get state(): RolloutState {
    return this.#changes.state;
  }

  get trialMs(): number {
    return this.#settings.trialMs;
  }

  get running(): Pick<RunningConfig, "id" | "elapsedMs" | "missing" | "stage"> {
    return this.#changes.running;
  }

  get report(): RolloutReport | undefined {
    const { running, record, wanted, unsaved } = this.#changes;
    const { id: active, elapsedMs } = running;
    if (active === undefined) return undefined;
    const missing = running.missing(this.state.trial?.needs ?? this.state.good?.needs ?? []);
    const problem = this.#syncProblem || (unsaved?.why ?? "");
    return reportOf(record, { active, wanted, problem, isFollowed: this.#settings.isFollowed, elapsedMs, missing });
  }

  /** What the next turn of the agent begins with. `files` are those of the first turn, until others are proposed. */
  begin(files: ReadVersion, isProcessStart: boolean): Promise<TurnStart> {
    this.#changes.files ??= files;
    this.#changes.record.keepAtHand(this.#changes.files.version);
    return this.#inTurn(() => beginTurn(this.#changes, isProcessStart));
  }

  /** From here on the turn is told what to do. */
  attend(turn: Turn): void {
    this.#changes.running.attend(turn);
  }

  /** The turn ended with an error. Another one is to begin where there is something to go back to. */
  failed(error: unknown): Promise<"begin anew" | "give up"> {
    const { running, record } = this.#changes;
    running.leave();
    return this.#inTurn(async () => {
      if (this.state.trial?.version === running.id && decide.canRollBack(this.state)) {
        await this.#changes.takeBack("harmful", `the agent could not run with it: ${explain(error)}`);
        return "begin anew";
      }
      record.state = decide.clearDoubts(this.state, "does not work").state;
      await record.saveQuietly();
      return "give up";
    });
  }

  /** The turn ended because it was asked to: for another one, or with the process. */
  ended(isProcessEnd: boolean): Promise<void> {
    const { running, record } = this.#changes;
    running.leave();
    return this.#inTurn(async () => {
      if (!isProcessEnd) return;
      record.state = decide.endInOrder(this.state);
      await record.saveQuietly();
    });
  }

  /** The files say something else, or are found as they were. */
  proposeFiles(read: ReadVersion): Promise<void> {
    return this.#inTurn(async () => {
      const { id } = read.version;
      // What is found as it was must not end a trial by hand, which began after it.
      if (this.#changes.files?.version.id === id && this.#changes.unsaved?.version !== id) return;
      this.#changes.files = read;
      this.#changes.record.keepAtHand(read.version);
      if (this.state.assigned === undefined) await this.#changes.consider(read.version, "the files have changed");
    });
  }

  /** The API wants this one. */
  proposeAssigned(version: ConfigVersion, by: AssignedVersion["by"]): Promise<void> {
    return this.#inTurn(async () => {
      const { record, unsaved } = this.#changes;
      this.#syncProblem = "";
      if (this.state.assigned?.version === version.id && unsaved?.version !== version.id) return;
      await record.saveVersion(version);
      await record.change({ ...this.state, assigned: { version: version.id, by } });
      await this.#changes.consider(version, `${describeSource(version.source)} has changed`);
    });
  }

  /** The API wants none any more: the files count again. */
  unassign(): Promise<void> {
    return this.#inTurn(async () => {
      const { record, files } = this.#changes;
      this.#syncProblem = "";
      if (this.state.assigned === undefined) return;
      await record.change({ ...this.state, assigned: undefined });
      if (files !== undefined) await this.#changes.consider(files.version, "no config map is assigned any more");
    });
  }

  /** What the API wants can't be read; what was wanted before goes on. */
  syncFailed(problem: string): void {
    if (this.#syncProblem === problem) return;
    this.#syncProblem = problem;
    this.#ports.log.warn("The configuration that the API server names can't be read", { problem });
    this.changed.tell();
  }

  /** A file that a person gives is to be tried out, until it is kept or its time is over. */
  async tryOut(file: TrialFile): Promise<AcceptedTrial> {
    const accepted = await this.#inTurn(() => this.#hand.tryOut(file));
    return { ...accepted, begin: () => this.#inTurn(() => accepted.begin()) };
  }

  compare(file: Omit<TrialFile, "forMs">): Promise<readonly SettingChange[]> {
    return this.#hand.compare(file);
  }

  /** The configuration that is being tried is to stay. */
  keep(): Promise<void> {
    return this.#inTurn(() => this.#hand.keep());
  }

  /** Takes the trial back before its time. */
  back(): Promise<void> {
    return this.#inTurn(() => this.#hand.back());
  }

  /** The trial has shown that the configuration works. */
  graduate(): Promise<void> {
    return this.#inTurn(async () => {
      const { running, record } = this.#changes;
      if (running.id === undefined || this.state.trial?.version !== running.id) return;
      this.#changes.becomeGood(running.id, "good", "it works");
      await record.saveQuietly();
      await this.#changes.prune();
    });
  }

  /** The trial has shown that it does not. */
  rollBack(kind: RefusalKind, why: string): Promise<void> {
    return this.#inTurn(() => this.#changes.rollBack(kind, why));
  }

  /** What the good configuration shows about those that were taken back. */
  showDoubts(sign: Parameters<typeof decide.clearDoubts>[1]): Promise<void> {
    return this.#inTurn(async () => {
      const { record, wanted, running } = this.#changes;
      const { state, again } = decide.clearDoubts(this.state, sign);
      record.state = state;
      const target = decide.dueVersion(state, wanted);
      if (!again.includes(target) || !this.#settings.isFollowed) return await record.saveQuietly();
      const begun = { now: this.#ports.clock.now(), forMs: this.#settings.trialMs };
      record.state = decide.tryAgain(state, target, begun);
      const why = "tried again: the one before did not work either at that time";
      record.note(target, "trial", why);
      await record.saveQuietly();
      running.turn?.beginAnew(why);
    });
  }

  /** One thing after the other; whoever shows the state looks again after each. */
  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#serial.run("state", work);
    } finally {
      this.changed.tell();
    }
  }
}
