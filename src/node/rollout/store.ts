import { join } from "node:path";
import { type HungNote, hungNoteName, readHungNote } from "./hung-note.ts";
import type { RolloutState } from "./state.ts";
import { emptyState } from "./state.ts";
import { readState, writeState } from "./state-file.ts";
import { type ConfigVersion, isWhole, type VersionId } from "./version.ts";

/** The little that is asked of a disk; what `saveDurably` writes is on it once that has resolved. */
export interface StoreDisk {
  /** Undefined: there is no such file. */
  read(path: string): Promise<string | undefined>;
  saveDurably(path: string, text: string): Promise<void>;
  /** Names in a directory; none when it is not there. */
  list(directory: string): Promise<readonly string[]>;
  remove(path: string): Promise<void>;
  /** With all that is in it. */
  removeDirectory(path: string): Promise<void>;
}

/** Two files take turns, so that whatever becomes of a write, the state before it is whole. */
const slots = ["state-a.json", "state-b.json"] as const;
type Slot = (typeof slots)[number];

/** What is known of configurations, on disk. One user at a time. */
export class RolloutStore {
  readonly #directory: string;
  readonly #disk: StoreDisk;
  #last: { readonly slot: Slot; readonly sequence: number; readonly state: RolloutState } | undefined;
  /** What the other file says: it counts again if the last one is torn after all. */
  #before: RolloutState = emptyState;

  constructor(directory: string, disk: StoreDisk) {
    this.#directory = directory;
    this.#disk = disk;
  }

  get directory(): string {
    return this.#directory;
  }

  /** Nothing was found of ours, and nothing written yet. */
  get isBlank(): boolean {
    return this.#last === undefined;
  }

  /** The newest state that is whole. */
  async load(): Promise<RolloutState> {
    for (const slot of slots) {
      // What can't be read is like what is torn: the other one is the truth.
      const text = await this.#disk.read(join(this.#directory, slot)).catch(() => undefined);
      const found = text === undefined ? undefined : readState(text);
      if (found === undefined) continue;
      if (found.sequence > (this.#last?.sequence ?? 0)) {
        this.#before = this.#last?.state ?? emptyState;
        this.#last = { slot, ...found };
      } else this.#before = found.state;
    }
    return this.#last?.state ?? emptyState;
  }

  async save(state: RolloutState): Promise<void> {
    const slot = this.#last?.slot === slots[0] ? slots[1] : slots[0];
    const sequence = (this.#last?.sequence ?? 0) + 1;
    await this.#disk.saveDurably(join(this.#directory, slot), writeState(state, sequence));
    this.#before = this.#last?.state ?? emptyState;
    this.#last = { slot, sequence, state };
  }

  /** Undefined when it is not there, or not whole. */
  async version(id: VersionId): Promise<ConfigVersion | undefined> {
    const text = await this.#disk.read(this.#versionPath(id)).catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      const version = JSON.parse(text) as ConfigVersion;
      return version.id === id && isWhole(version) ? version : undefined;
    } catch {
      return undefined;
    }
  }

  /** A version that a state names is saved before the state is. */
  async saveVersion(version: ConfigVersion): Promise<void> {
    if ((await this.version(version.id)) !== undefined) return;
    await this.#disk.saveDurably(this.#versionPath(version.id), `${JSON.stringify(version)}\n`);
  }

  /** What a process that got stuck has left. */
  async hungNote(): Promise<HungNote | undefined> {
    const text = await this.#disk.read(this.#hungNotePath).catch(() => undefined);
    return text === undefined ? undefined : readHungNote(text);
  }

  async forgetHungNote(): Promise<void> {
    await this.#disk.remove(this.#hungNotePath);
  }

  /** Removes versions that nothing names any more: neither the state on disk nor the one that it has taken the place of. */
  async prune(): Promise<void> {
    const named = [this.#last?.state ?? emptyState, this.#before].flatMap((state) => [
      ...[state.good, state.kept, state.trial, state.assigned],
      ...state.refused.slice(-keptRefused),
    ]);
    const kept = new Set(named.flatMap((each) => (each === undefined ? [] : [`${each.version}.json`])));
    const directory = join(this.#directory, "versions");
    for (const name of await this.#disk.list(directory)) {
      if (!kept.has(name)) await this.#disk.remove(join(directory, name));
    }
  }

  get #hungNotePath(): string {
    return join(this.#directory, hungNoteName);
  }

  #versionPath(id: VersionId): string {
    return join(this.#directory, "versions", `${id}.json`);
  }
}

/** So many that were given up can still be looked at. */
const keptRefused = 5;
