import type { ConfigIo, InvalidConfig } from "../../ground/config/index.ts";
import type { RolloutRecord } from "./rollout-record.ts";
import type { LoadedVersion } from "./running.ts";
import { loadVersion, type VersionId } from "./version.ts";

/** Loads versions as the agent loads files at its start: the same checks, the flags of today. */
export class VersionLoader {
  readonly #record: RolloutRecord;
  readonly #argv: readonly string[];
  readonly #io: ConfigIo;

  constructor(record: RolloutRecord, argv: readonly string[], io: ConfigIo) {
    this.#record = record;
    this.#argv = argv;
    this.#io = io;
  }

  /** `isLost`: nobody knows any more what it said. */
  async load(id: VersionId): Promise<LoadedVersion | { readonly invalid: InvalidConfig; readonly isLost: boolean }> {
    const version = await this.#record.find(id);
    if (version === undefined) return { invalid: lost(id), isLost: true };
    const loaded = await loadVersion(this.#argv, version, this.#io);
    if (loaded.kind === "config") return { version, config: loaded.config };
    return { invalid: loaded.kind === "invalid" ? loaded : lost(id), isLost: loaded.kind !== "invalid" };
  }

  /** The last known good one; undefined when there is none, or none that can be loaded. */
  async knownGood(): Promise<LoadedVersion | undefined> {
    const { good } = this.#record.state;
    const found = good && (await this.load(good.version));
    return found === undefined || "invalid" in found ? undefined : found;
  }
}

function lost(id: VersionId): InvalidConfig {
  const message = `no checkpoint for version ${id}: it is not on disk, or not whole`;
  return { kind: "invalid", message, step: "", problems: [{ message }], warnings: [] };
}
