import { readFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, isShortage, type Logger, messageOf } from "../../ground/base/index.ts";
import type { ContainerId, PodUid } from "../../ground/model/index.ts";
import { type ProbeStore, probeKinds, type SavedResult } from "./ports.ts";

const fileName = "nodelet-probes.json";
const results: readonly string[] = ["success", "failure", "unknown"];

/**
 * Keeps the results of a pod in its directory. Not synced to disk: they are about running containers, which do not
 * survive a loss of power either. A directory that is gone is not made again, the pod is being cleaned up.
 */
export class FileProbeStore implements ProbeStore {
  readonly #podsDirectory: string;
  readonly #log: Logger;

  /** `podsDirectory` is `<root-dir>/pods`. */
  constructor(podsDirectory: string, log: Logger) {
    this.#podsDirectory = podsDirectory;
    this.#log = log;
  }

  /** Throws while the machine lacks what it takes to read the file: the pod would be shown as not ready for a while. */
  load(uid: PodUid): readonly SavedResult[] | undefined {
    const path = this.#path(uid);
    try {
      // Synchronous, as a status computed before the results are known would show the pod as not ready.
      return parseResults(JSON.parse(readFileSync(path, "utf8")));
    } catch (error) {
      if (isShortage(error))
        throw new Error(`Cannot read its probe results now: ${messageOf(error)}`, { cause: error });
      if (!hasCode(error, "ENOENT")) {
        this.#log.warn("Ignoring saved probe results that cannot be read", { path, error: messageOf(error) });
      }
      return undefined;
    }
  }

  async save(uid: PodUid, saved: readonly SavedResult[]): Promise<void> {
    const path = this.#path(uid);
    const scratch = `${path}.new`;
    try {
      await writeFile(scratch, JSON.stringify({ version: 1, results: saved }), { mode: 0o600 });
      await rename(scratch, path);
    } catch (error) {
      if (hasCode(error, "ENOENT")) return;
      this.#log.warn("Cannot save probe results; a restart of the agent may show the pod as not ready", {
        path,
        error: messageOf(error),
      });
    }
  }

  async remove(uid: PodUid): Promise<void> {
    const path = this.#path(uid);
    try {
      await rm(`${path}.new`, { force: true });
      await rm(path, { force: true });
    } catch (error) {
      this.#log.warn("Cannot remove saved probe results", { path, error: messageOf(error) });
    }
  }

  #path(uid: PodUid): string {
    return join(this.#podsDirectory, uid, fileName);
  }
}

function parseResults(document: unknown): readonly SavedResult[] {
  if (typeof document !== "object" || document === null || !("results" in document)) {
    throw new Error("wanted an object with results");
  }
  if (!Array.isArray(document.results)) throw new Error("wanted a list of results");
  return document.results.map(parseResult);
}

function parseResult(entry: unknown): SavedResult {
  const { container, kind, id, result } = (typeof entry === "object" && entry !== null ? entry : {}) as Record<
    keyof SavedResult,
    unknown
  >;
  const knownKind = probeKinds.find((known) => known === kind);
  if (typeof container !== "string" || typeof id !== "string" || knownKind === undefined || !isResult(result)) {
    throw new Error(`wanted container, kind, id and result, found ${JSON.stringify(entry)}`);
  }
  return { container, kind: knownKind, id: id as ContainerId, result };
}

function isResult(value: unknown): value is SavedResult["result"] {
  return typeof value === "string" && results.includes(value);
}
