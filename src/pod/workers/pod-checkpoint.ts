import { readFileSync } from "node:fs";
import { type FileHandle, mkdir, open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type Clock,
  hasCode,
  isShortage,
  type Logger,
  messageOf,
  saveFile,
  type TaskScope,
} from "../../ground/base/index.ts";
import { isTerminalPhase, type NodeDecision, type PodStatus, type PodUid } from "../../ground/model/index.ts";
import { DelayedFsync, type DelayedFsyncOptions } from "./delayed-fsync.ts";
import type { PodCheckpoint, PodCheckpointPort } from "./ports.ts";

/** A disk that was full may have room again. */
const saveAgainMs = 30_000;

/**
 * Keeps what must outlive the agent in the pod's directory: its last status, its back-off, why the node ends it, and which
 * containers are being replaced. The newest version wins; a file that is damaged counts as empty, since most of what is in
 * it can be learnt anew.
 */
export class PodCheckpointFiles implements PodCheckpointPort {
  readonly #podsDir: string;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #scope: TaskScope;
  readonly #sync: DelayedFsync;
  /** What was handed in last, until it could not be written. */
  readonly #newest = new Map<PodUid, string>();
  /** What could not be written; of a pod that has ended nothing newer may ever come. */
  readonly #unsaved = new Map<PodUid, PodCheckpoint>();
  #isSavingAgain = false;
  readonly #underWay = new Map<PodUid, Promise<void>>();

  constructor(options: DelayedFsyncOptions & { readonly podsDir: string }) {
    this.#podsDir = options.podsDir;
    this.#log = options.log;
    this.#clock = options.clock;
    this.#scope = options.scope;
    this.#sync = new DelayedFsync(options);
  }

  /**
   * Throws while the machine lacks what it takes to read the file: a pod that has ended, or is being taken off, would run
   * again, and what is known of it would be overwritten.
   */
  load(uid: PodUid): PodCheckpoint {
    const path = this.#path(uid);
    try {
      const parsed: unknown = JSON.parse(readFileSync(path, "utf8"));
      if (isObject(parsed)) return asCheckpoint(parsed);
      this.#log.warn("Ignoring a pod checkpoint that is not an object; the pod's history is lost", { path });
    } catch (error) {
      if (isShortage(error))
        throw new Error(`Cannot read the pod's checkpoint now: ${messageOf(error)}`, { cause: error });
      if (!hasCode(error, "ENOENT")) {
        this.#log.warn("Ignoring a pod checkpoint that can't be read; the pod's history is lost", { path, err: error });
      }
    }
    return {};
  }

  /** Whether the pod may have been here before: only the order of pods depends on it. */
  mayKnow(uid: PodUid): boolean {
    try {
      return this.load(uid).status !== undefined;
    } catch {
      return true;
    }
  }

  /** Resolves when it would survive the end of the agent, or could not be written, which the log tells. */
  async save(uid: PodUid, checkpoint: PodCheckpoint): Promise<void> {
    const text = JSON.stringify(checkpoint);
    const earlier = this.#underWay.get(uid);
    if (this.#newest.get(uid) === text) return earlier;
    this.#newest.set(uid, text);
    const write = this.#write(uid, text, checkpoint, earlier);
    this.#underWay.set(uid, write);
    await write;
    if (this.#underWay.get(uid) === write) this.#underWay.delete(uid);
  }

  /** Resolves when nothing will be written into the pod's directory any more, which may then be removed. */
  async forget(uid: PodUid): Promise<void> {
    this.#newest.delete(uid);
    this.#unsaved.delete(uid);
    await this.#underWay.get(uid);
  }

  async #write(
    uid: PodUid,
    text: string,
    checkpoint: PodCheckpoint,
    earlier: Promise<void> | undefined,
  ): Promise<void> {
    await earlier;
    if (this.#newest.get(uid) !== text) return;
    const path = this.#path(uid);
    try {
      if (isOver(checkpoint)) {
        await makeDirectoryOf(path);
        await saveFile(path, text, 0o600);
      } else {
        // An agent that dies leaves it whole. A loss of power may take it back until it is synced, which no status
        // waits for.
        await replaceQuickly(path, text);
        this.#sync.changed(path);
      }
      if (this.#newest.get(uid) === text) this.#unsaved.delete(uid);
    } catch (error) {
      const said = "Could not save a pod's checkpoint; a restart of the agent would forget its status";
      // Once, however often it is tried.
      if (!this.#unsaved.has(uid)) this.#log.error(said, error, { path });
      // Forgotten meanwhile, or what is newer waits for its turn.
      if (this.#newest.get(uid) !== text) return;
      // The same content may be handed in again.
      this.#newest.delete(uid);
      this.#unsaved.set(uid, checkpoint);
      this.#saveAgain();
    }
  }

  #saveAgain(): void {
    if (this.#isSavingAgain) return;
    this.#isSavingAgain = true;
    this.#scope.spawn("save checkpoints again", async (signal) => {
      try {
        while (this.#unsaved.size > 0) {
          await this.#clock.sleep(saveAgainMs, signal);
          for (const [uid, checkpoint] of [...this.#unsaved]) {
            signal.throwIfAborted();
            // Not one that was forgotten, or is being written, while those before it were saved.
            if (this.#unsaved.get(uid) === checkpoint && !this.#newest.has(uid)) await this.save(uid, checkpoint);
          }
        }
      } finally {
        this.#isSavingAgain = false;
      }
    });
  }

  #path(uid: PodUid): string {
    return join(this.#podsDir, uid, "nodelet.json");
  }
}

/** In as few steps as can be: every status waits for them, and on a busy machine each step waits for its turn. */
async function replaceQuickly(path: string, text: string): Promise<void> {
  const unfinished = `${path}.new`;
  const file = await openToWrite(unfinished);
  try {
    await file.writeFile(text);
  } catch (error) {
    await file.close();
    throw error;
  }
  await Promise.all([rename(unfinished, path), file.close()]);
}

async function openToWrite(path: string): Promise<FileHandle> {
  try {
    return await open(path, "w", 0o600);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    await makeDirectoryOf(path);
    return await open(path, "w", 0o600);
  }
}

async function makeDirectoryOf(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
}

/**
 * That a pod has ended must outlive a loss of power, or it would run again. What is said of a running pod (restarts,
 * when it started, its back-off) is worth a sync, but not a wait for one at every change.
 */
function isOver({ status }: PodCheckpoint): boolean {
  return isTerminalPhase(status?.phase);
}

type Unchecked = Readonly<Record<string, unknown>>;

/** What is of the form it should have; the rest counts as not there, so that an odd file is no worse than none. */
function asCheckpoint({ status, crashBackoff, decision, replaced }: Unchecked): PodCheckpoint {
  return {
    ...(isDecision(decision) ? { decision } : {}),
    ...(isStatus(status) ? { status } : {}),
    ...(isBackoff(crashBackoff) ? { crashBackoff } : {}),
    ...(areTexts(replaced) ? { replaced } : {}),
  };
}

function isObject(value: unknown): value is Unchecked {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStatus(value: unknown): value is PodStatus {
  if (!isObject(value)) return false;
  const lists = [
    [value["conditions"], "type"],
    [value["containerStatuses"], "name"],
    [value["initContainerStatuses"], "name"],
    [value["ephemeralContainerStatuses"], "name"],
  ] as const;
  return lists.every(([list, key]) => {
    if (list === undefined) return true;
    return Array.isArray(list) && list.every((entry) => isObject(entry) && typeof entry[key] === "string");
  });
}

function isDecision(value: unknown): value is NodeDecision {
  if (!isObject(value)) return false;
  const { reason, message, disruption } = value;
  const isKnown = reason === "Evicted" || reason === "Preempting";
  return isKnown && typeof message === "string" && (disruption === undefined || typeof disruption === "string");
}

function areTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((each) => typeof each === "string");
}

function isBackoff(value: unknown): value is NonNullable<PodCheckpoint["crashBackoff"]> {
  const isEntry = (entry: unknown): boolean =>
    isObject(entry) && Number.isFinite(entry["delayMs"]) && Number.isFinite(entry["updatedAt"]);
  return isObject(value) && Object.values(value).every(isEntry);
}
