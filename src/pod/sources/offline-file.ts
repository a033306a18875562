import { readFile } from "node:fs/promises";
import {
  type Clock,
  hasCode,
  isShortage,
  type Logger,
  messageOf,
  Pause,
  savePrivateFile,
} from "../../ground/base/index.ts";
import { type IdentifiedPod, isPlainUid, isTerminalPhase, type Pod } from "../../ground/model/index.ts";
import type { OfflineList } from "./offline-rules.ts";

const formatVersion = 1;
/** Pods come in bursts, and each write holds them all. What a crash loses in between shows in the runtime. */
const writeEveryMs = 1_000;
/** How often a list without changes is confirmed, so that its age says how long the API server has been unheard. */
const confirmEveryMs = 3_600_000;

/** Whose pods the list holds: one of another node or cluster is none. */
export interface ListOwner {
  readonly nodeName: string;
  readonly server: string;
}

/** The Node's uid where it is known: a Node that was made anew under its name has other pods. */
export type NodeUid = () => string | undefined;

export interface OfflineFilePorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeUid: NodeUid;
  /** When the API server was last heard of its pods, on the monotonic clock. */
  readonly heardAt: () => number | undefined;
  /** The pods that the API server wants; undefined while it has not said. */
  readonly pods: () => readonly IdentifiedPod[] | undefined;
  /** Replaces the file as a whole, synced. */
  readonly save?: typeof savePrivateFile;
}

/** The API's pods on disk, for a start of the agent while the API server can't be reached. */
export class OfflineFile {
  readonly #path: string;
  readonly #owner: ListOwner;
  readonly #ports: OfflineFilePorts;
  readonly #pause: Pause;
  #isDue = false;
  /** What the API server had last been heard at when the list was written. */
  #writtenAsOf: number | undefined;

  constructor(path: string, owner: ListOwner, ports: OfflineFilePorts) {
    this.#path = path;
    this.#owner = owner;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** What the API server wants has changed, or the Node that it wants it of. */
  changed(): void {
    this.#isDue = true;
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (!this.#isDue) await this.#pause.wait(confirmEveryMs, signal);
      const isNews = this.#isDue || this.#ports.heardAt() !== this.#writtenAsOf;
      this.#isDue = false;
      const pods = this.#ports.pods();
      if (pods !== undefined && isNews) await this.#write(pods);
      await this.#ports.clock.sleep(writeEveryMs, signal);
    }
  }

  /** Throws while the machine lacks what it takes to read the file: there may be a list all the same. */
  async load(): Promise<OfflineList | undefined> {
    try {
      const parsed: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      const problem = this.#problemOf(parsed);
      if (problem !== undefined) throw new Error(problem);
      const { pods, ended, confirmedAt, nodeUid } = parsed as SavedList;
      return { pods: pods.filter(isIdentified), ended, confirmedAtMs: Date.parse(confirmedAt), nodeUid };
    } catch (error) {
      if (isShortage(error)) throw error;
      if (!hasCode(error, "ENOENT")) {
        this.#ports.log.warn("Ignoring the list of the API's pods on disk", {
          path: this.#path,
          err: messageOf(error),
        });
      }
      return undefined;
    }
  }

  #problemOf(parsed: unknown): string | undefined {
    if (typeof parsed !== "object" || parsed === null) return "it does not hold an object";
    const { version, nodeName, server, pods, ended, confirmedAt } = parsed as Partial<SavedList>;
    if (version !== formatVersion) return `its format is not version ${formatVersion}`;
    if (nodeName !== this.#owner.nodeName) return `it is of node ${nodeName}, this is ${this.#owner.nodeName}`;
    if (server !== this.#owner.server) return `it is of the API server ${server}, this one is ${this.#owner.server}`;
    if (!Array.isArray(pods) || !Array.isArray(ended)) return "it does not hold lists of pods";
    return Number.isFinite(Date.parse(confirmedAt ?? "")) ? undefined : "it does not say when it was written";
  }

  async #write(pods: readonly IdentifiedPod[]): Promise<void> {
    const { clock } = this.#ports;
    const nodeUid = this.#ports.nodeUid();
    const heardAt = this.#ports.heardAt();
    // A list is as old as the API server's last word, however often it is written while that one is silent.
    const silentMs = heardAt === undefined ? 0 : clock.monotonic() - heardAt;
    const saved: Omit<SavedList, "pods"> = {
      version: formatVersion,
      ...this.#owner,
      ...(nodeUid !== undefined && { nodeUid }),
      confirmedAt: new Date(clock.now() - silentMs).toISOString(),
      ended: pods.filter(isEnding).map(({ metadata }) => metadata.uid),
    };
    try {
      const wanted = pods.filter((pod) => !isEnding(pod));
      await (this.#ports.save ?? savePrivateFile)(this.#path, pieces(saved, wanted));
      this.#writtenAsOf = heardAt;
    } catch (error) {
      const problem = "Could not keep the list of the API's pods on disk; without the API server none could be started";
      this.#ports.log.error(problem, error, { path: this.#path });
    }
  }
}

/** Pods may have megabytes each: to write them all in one go would hold up everything else. */
const pieceLength = 64 * 1024;

function* pieces(saved: Omit<SavedList, "pods">, pods: readonly IdentifiedPod[]): Generator<string, void> {
  let piece = `${JSON.stringify(saved).slice(0, -1)},"pods":[`;
  for (const [index, pod] of pods.entries()) {
    piece += `${index === 0 ? "" : ","}${JSON.stringify(withoutStatus(pod))}`;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = "";
  }
  yield `${piece}]}`;
}

interface SavedList extends ListOwner {
  readonly version: number;
  /** Absent: the Node was not known then. */
  readonly nodeUid?: string;
  readonly confirmedAt: string;
  readonly pods: readonly IdentifiedPod[];
  readonly ended: readonly string[];
}

/** Whether the API's object has what everything behind the sources relies on. */
export function isIdentified(pod: Pod): pod is IdentifiedPod {
  const { name, namespace, uid } = pod.metadata ?? {};
  const hasNames = name !== undefined && namespace !== undefined && uid !== undefined && isPlainUid(uid);
  return hasNames && Array.isArray(pod.spec?.containers);
}

function isEnding({ metadata, status }: IdentifiedPod): boolean {
  return metadata.deletionTimestamp !== undefined || isTerminalPhase(status?.phase);
}

function withoutStatus({ status: _status, ...pod }: IdentifiedPod): IdentifiedPod {
  return pod;
}

/** Whether the API server asks for the same of this pod as before: echoes of our own statuses are no wish. */
export function isSameWish(before: IdentifiedPod, now: IdentifiedPod): boolean {
  return isEnding(before) === isEnding(now) && wishOf(before) === wishOf(now);
}

/** All but what the node itself and heartbeats change. */
function wishOf({ metadata: { resourceVersion: _version, ...metadata }, spec }: IdentifiedPod): string {
  return JSON.stringify([metadata, spec]);
}
