import {
  type Clock,
  explain,
  type Logger,
  messageOf,
  never,
  unlessAborted,
  withDeadline,
} from "../../ground/base/index.ts";
import {
  type AgentConfig,
  type ChangeEffect,
  type ConfigIo,
  complaintAbout,
  configDifferences,
  effectOfAll,
} from "../../ground/config/index.ts";
import * as decide from "./decide.ts";
import { VersionLoader } from "./loader.ts";
import type { OldNotes } from "./old-layout.ts";
import { RolloutRefusal } from "./ports.ts";
import { RolloutRecord } from "./rollout-record.ts";
import { type LoadedVersion, RunningConfig } from "./running.ts";
import type { AssignedVersion, RefusalKind, RolloutState } from "./state.ts";
import type { RolloutStore } from "./store.ts";
import { changedEvent, refusedEvent, rolledBackEvent } from "./texts.ts";
import { type ConfigVersion, isSameText, type ReadVersion, type VersionId } from "./version.ts";

/** How long it may take to look at a path that a configuration names. */
const lookMs = 10_000;

export interface KeeperSettings {
  /** The words of the agent's command line. */
  readonly argv: readonly string[];
  /** Changes are taken over as they come. Otherwise files are read once, and only trials by hand are known. */
  readonly isFollowed: boolean;
  readonly trialMs: number;
  /** Whose word about config maps counts with this command line. */
  readonly assignedBy: readonly AssignedVersion["by"][];
}

export interface KeeperPorts {
  readonly store: RolloutStore;
  /** What another kubelet noted, where we have noted nothing ourselves. */
  readonly oldNotes?: () => Promise<OldNotes>;
  readonly io: ConfigIo;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * How the agent gets from one configuration to another and back. Each step is on disk before it is made. Whoever calls
 * lets one thing happen after the other.
 */
export class ConfigChanges {
  readonly settings: KeeperSettings;
  readonly ports: KeeperPorts;
  readonly record: RolloutRecord;
  readonly loader: VersionLoader;
  readonly running: RunningConfig;
  /** What the files last said. */
  files: ReadVersion | undefined;
  /** What is wanted, but could not be saved, and why: it is tried again when it is proposed again. */
  unsaved: { readonly version: VersionId; readonly why: string } | undefined;

  constructor(settings: KeeperSettings, ports: KeeperPorts) {
    this.settings = settings;
    this.ports = ports;
    this.record = new RolloutRecord(ports);
    this.loader = new VersionLoader(this.record, settings.argv, ports.io);
    this.running = new RunningConfig(ports.clock);
  }

  get state(): RolloutState {
    return this.record.state;
  }

  /** What the files or the API want. */
  get wanted(): VersionId {
    const { assigned } = this.state;
    if (this.files === undefined) throw new Error("begin comes first");
    return assigned?.version ?? this.files.version.id;
  }

  get needs(): readonly string[] {
    return this.running.needs(this.state.good?.needs);
  }

  /** What the next turn would begin with. */
  choose(isProcessStart: boolean): decide.Choice {
    const { isFollowed, trialMs } = this.settings;
    const wanted = { version: this.wanted, isFollowed, trialMs };
    return decide.chooseVersion(this.state, wanted, { isProcessStart, now: this.ports.clock.now() });
  }

  /** Something else is wanted: it is taken up, or refused. */
  async consider(version: ConfigVersion, cause: string): Promise<void> {
    const { active } = this.running;
    const target = decide.dueVersion(this.state, version.id);
    this.unsaved = undefined;
    this.record.keepAtHand(version);
    if (active === undefined || this.running.turn === undefined || target === active.version.id) return;
    const isGood = this.state.good?.version === target;
    if (!isGood) await this.#heedRefusalOfSame(version);
    const refusal = decide.refusalOf(this.state, target);
    if (!isGood && refusal !== undefined && !decide.mayBeOver(refusal)) return;
    const found = await this.loader.load(target);
    if ("invalid" in found) return await this.#refuse(target, "invalid", complaintAbout(found.invalid));
    const changes = configDifferences(active.config, found.config);
    const effect = await this.effectOf(active.config, found.config);
    if (typeof effect === "object") return await this.#refuse(target, "while running", effect.refused);
    const settings = changes.map(({ name }) => name);
    this.ports.log.info("Switching to another configuration", { cause, version: target, effect, settings });
    const begun = { now: this.ports.clock.now(), forMs: this.settings.trialMs, mustBeKept: false, effect };
    const state = decide.forgetKept(this.state, target, version.id);
    const next = isGood
      ? { ...state, trial: undefined }
      : decide.beginTrial(state, target, { ...begun, needs: this.needs });
    await this.proceed(next, found, { effect, cause, what: isGood ? "good" : "trial" });
  }

  /** A label on a config map makes another version of it, but no other configuration. */
  async #heedRefusalOfSame(version: ConfigVersion): Promise<void> {
    if (version.source.from !== "configMap" || decide.refusalOf(this.state, version.id) !== undefined) return;
    for (const { version: id } of this.state.refused.toReversed()) {
      const other = await this.record.find(id);
      if (other === undefined || !isSameText(version, other)) continue;
      this.record.state = decide.passOnRefusal(this.state, id, version.id);
      return await this.record.saveQuietly();
    }
  }

  /** What taking over the other configuration takes, or why that is not done while pods run. */
  async effectOf(from: AgentConfig, to: AgentConfig): Promise<ChangeEffect> {
    const effect = effectOfAll(configDifferences(from, to));
    const { staticPodPath } = to.kubelet;
    if (typeof effect === "object" || staticPodPath === "" || staticPodPath === from.kubelet.staticPodPath) {
      return effect;
    }
    // A process that starts makes do without, as the kubelet does. One that has pods from there would stop them all.
    const why = await this.#whyNotThere(staticPodPath);
    if (why === undefined) return effect;
    return { refused: `staticPodPath: ${staticPodPath} ${why}, and all pods of the old place would be stopped` };
  }

  /** A file server that is dead never answers; the next configuration must not wait for it, too. */
  async #whyNotThere(path: string): Promise<string | undefined> {
    const { clock, io } = this.ports;
    const late = (): Error => new Error(`does not answer within ${lookMs / 1000} s`);
    try {
      await withDeadline(clock, lookMs, late, never, (bounded) =>
        unlessAborted(
          io.kindOf(path).catch(() => {
            throw new Error("is not there");
          }),
          bounded,
        ),
      );
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Goes on with another configuration once that is on disk; throws where it can't be, and everything stays as it is. */
  async proceed(
    next: RolloutState,
    found: LoadedVersion,
    { effect, cause, what }: { effect: "at once" | "restart"; cause: string; what: "good" | "trial" },
  ): Promise<void> {
    const before = this.state;
    this.record.state = next;
    if (what === "trial") this.#secureWayBack(before);
    this.record.keepAtHand(found.version);
    this.record.note(found.version.id, what, cause);
    try {
      // Back to what is known to be good there is a way on a full disk, too: the next process finds it by itself.
      if (what === "good") await this.record.saveQuietly();
      else await this.record.secure(found.version);
    } catch (error) {
      this.record.state = before;
      throw new RolloutRefusal(this.cantSave(found.version, error), { cause: error });
    }
    this.#takeUp(found, effect, cause);
    await this.prune();
  }

  /**
   * Where nothing is known to be good yet, what works at this moment is where to go back to: a node whose config map comes
   * within its first minutes must survive a bad one, too.
   */
  #secureWayBack({ good, trial }: RolloutState): void {
    const { id } = this.running;
    if (!this.settings.isFollowed || good !== undefined || id === undefined) return;
    // What a person only tries is not to stay.
    if ((trial?.version === id && trial.mustBeKept) || this.running.missing(this.needs) !== undefined) return;
    this.record.state = { ...this.state, good: { version: id, needs: this.needs } };
    this.record.note(id, "good", "it works so far, and nothing else is known to");
  }

  cantSave({ id }: ConfigVersion, error: unknown): string {
    const why = `it can't be saved: ${explain(error)}`;
    this.ports.log.error("A configuration can't be tried: it can't be saved", error, { version: id });
    this.unsaved = { version: id, why };
    return why;
  }

  /** Goes on with the configuration: in this turn, or in one that begins for it. */
  #takeUp(found: LoadedVersion, effect: "at once" | "restart", cause: string): void {
    const event = changedEvent(found.version, effect);
    if (effect === "restart") {
      this.running.tellNext(event);
      this.running.turn?.beginAnew(cause);
      return;
    }
    this.running.become(found);
    this.running.turn?.apply(found.config);
    this.running.tellNow(event);
  }

  async #refuse(version: VersionId, kind: RefusalKind, why: string): Promise<void> {
    this.ports.log.error("A configuration is refused; the one in use stays", why, { version });
    this.record.state = decide.refuseVersion(this.state, { version, kind, why, now: this.ports.clock.now() });
    this.record.note(version, "refused", why);
    this.running.tellNow(refusedEvent(why));
    await this.record.saveQuietly();
  }

  becomeGood(id: VersionId, what: "good" | "kept", why: string): void {
    this.record.state = decide.becomeGood(this.state, id, this.needs);
    this.record.note(id, what, why);
    this.ports.log.info("The configuration is known to be good", { version: id, why });
  }

  /** Ends the trial, and goes back to what is due without it. */
  async rollBack(kind: RefusalKind, why: string): Promise<void> {
    const { active } = this.running;
    if (active === undefined || this.state.trial?.version !== active.version.id || !decide.canRollBack(this.state))
      return;
    await this.takeBack(kind, why);
    const { use, isTrial } = this.choose(false);
    const next = isTrial ? undefined : await this.loader.load(use);
    const isLoaded = next !== undefined && !("invalid" in next);
    if (isLoaded && effectOfAll(configDifferences(active.config, next.config)) === "at once") {
      this.#takeUp(next, "at once", why);
    } else this.running.turn?.beginAnew(`back to what was before: ${why}`);
  }

  /** Ends the trial; what comes next is for others to say. */
  async takeBack(kind: RefusalKind, why: string): Promise<void> {
    const version = this.state.trial?.version;
    if (version === undefined) return;
    this.record.state = decide.rollBack(this.state, { kind, why, now: this.ports.clock.now() });
    this.tellRollBack(version);
    await this.record.saveQuietly();
  }

  tellRollBack(version: VersionId): void {
    const why = decide.refusalOf(this.state, version)?.why ?? "something else is wanted by now";
    this.ports.log.warn("The configuration was taken back", { version, why });
    this.record.note(version, "rolled back", why);
    this.running.tellNext(rolledBackEvent(why));
  }

  async prune(): Promise<void> {
    await this.record.prune([this.files?.version.id, this.running.id]);
  }
}
