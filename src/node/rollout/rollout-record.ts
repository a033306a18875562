import { type Clock, type Logger, messageOf } from "../../ground/base/index.ts";
import { note } from "./decide.ts";
import { emptyState, type HistoryEntry, type RolloutState } from "./state.ts";
import type { RolloutStore } from "./store.ts";
import { type ConfigVersion, describeSource, type VersionId, type VersionSource } from "./version.ts";

export interface RolloutRecordPorts {
  readonly store: RolloutStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The state as it is and as it is on disk, and the versions that it names. */
export class RolloutRecord {
  readonly #ports: RolloutRecordPorts;
  /** Versions that were read in this process, by id. */
  readonly #shelf = new Map<VersionId, ConfigVersion>();
  state: RolloutState = emptyState;
  #onDisk = "";

  constructor(ports: RolloutRecordPorts) {
    this.#ports = ports;
  }

  async open(): Promise<void> {
    this.state = await this.#ports.store.load();
    this.#onDisk = JSON.stringify(this.state);
    for (const named of [this.state.good, this.state.assigned, this.state.trial, this.state.kept]) {
      if (named !== undefined) await this.find(named.version);
    }
  }

  /** Undefined when it was lost. */
  async find(id: VersionId): Promise<ConfigVersion | undefined> {
    const known = this.#shelf.get(id) ?? (await this.#ports.store.version(id));
    if (known !== undefined) this.#shelf.set(id, known);
    return known;
  }

  keepAtHand(version: ConfigVersion): void {
    this.#shelf.set(version.id, version);
  }

  sourceOf(id: VersionId): VersionSource {
    return this.#shelf.get(id)?.source ?? { from: "files" };
  }

  async saveVersion(version: ConfigVersion): Promise<void> {
    this.keepAtHand(version);
    await this.#ports.store.saveVersion(version);
  }

  async save(): Promise<void> {
    const text = JSON.stringify(this.state);
    if (text === this.#onDisk) return;
    // One that could not be saved when it was begun has none on disk yet, and the next process could not go back to it.
    for (const id of this.#named()) {
      const version = this.#shelf.get(id);
      if (version !== undefined) await this.#ports.store.saveVersion(version);
    }
    await this.#ports.store.save(this.state);
    this.#onDisk = text;
  }

  /** Becomes another state once that is on disk; throws where it can't be, and stays what it was. */
  async change(next: RolloutState): Promise<void> {
    const before = this.state;
    this.state = next;
    try {
      await this.save();
    } catch (error) {
      this.state = before;
      throw error;
    }
  }

  /** For what is true whether or not the disk takes it. */
  async saveQuietly(): Promise<void> {
    try {
      await this.save();
    } catch (error) {
      this.#ports.log.error("What became of a configuration can't be saved", error);
    }
  }

  /** Puts a version and the state that names it on disk; where that fails, nothing may be begun. */
  async secure(version: ConfigVersion): Promise<void> {
    await this.saveVersion(version);
    await this.save();
  }

  note(id: VersionId, what: HistoryEntry["what"], why: string): void {
    const at = this.#ports.clock.now();
    this.state = note(this.state, { at, version: id, source: describeSource(this.sourceOf(id)), what, why });
  }

  /** Removes what nothing names any more, and is not at hand for another reason; that it could not be is no harm. */
  async prune(atHand: readonly (VersionId | undefined)[]): Promise<void> {
    try {
      // The next process goes by what is on disk: what that names has to stay, whatever is known here by now.
      if (JSON.stringify(this.state) === this.#onDisk) await this.#ports.store.prune();
    } catch (error) {
      this.#ports.log.debug(1, "Old configurations can't be removed", { err: messageOf(error) });
    }
    const named = new Set([...this.#named(), ...atHand]);
    for (const id of this.#shelf.keys()) if (!named.has(id)) this.#shelf.delete(id);
  }

  #named(): readonly VersionId[] {
    const { good, kept, trial, assigned } = this.state;
    return [good, kept, trial, assigned].flatMap((each) => (each === undefined ? [] : [each.version]));
  }
}
