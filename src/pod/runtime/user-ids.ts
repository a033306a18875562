import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { aFewAtOnce, ifThere, mapAtMost, messageOf, saveFile } from "../../ground/base/index.ts";
import type { IdentifiedPod, PodUid } from "../../ground/model/index.ts";
import type { IdRange } from "./mapping/index.ts";

/**
 * Ranges of host user ids for pods with a user namespace of their own. A pod keeps its range for life; what is taken
 * is written into the pod's directory in the Go kubelet's format, so that either agent goes on where the other ended.
 */
export class UserIds {
  readonly #podsDir: string;
  readonly #pool: UserIdPool;
  readonly #ranges = new Map<PodUid, number>();
  /** Pods that hold ids nobody knows, with what is wrong: while there are any, a new range might be theirs. */
  readonly #unknown = new Map<PodUid, string>();
  /** Ranges that are not on disk: after a restart of the agent another pod would be given the same. */
  readonly #unwritten = new Set<PodUid>();

  constructor(podsDir: string, pool: UserIdPool) {
    this.#podsDir = podsDir;
    this.#pool = pool;
  }

  /**
   * Reads back what pods were given before; call once before the first allocation. Returns what could not be read: it
   * keeps new pods from having ranges until those pods are gone, and nobody else from anything.
   */
  async restore(): Promise<readonly string[]> {
    // Not known is not the same as none: ranges that are in use would be given again.
    for (const name of await ifThere(readdir(this.#podsDir), [])) {
      const uid = name as PodUid;
      try {
        const index = await this.#onDisk(uid);
        if (index !== undefined) this.#ranges.set(uid, index);
      } catch (error) {
        this.#unknown.set(uid, messageOf(error));
      }
    }
    return [...this.#unknown.values()];
  }

  async allocate(pod: IdentifiedPod): Promise<IdRange> {
    const uid = pod.metadata.uid as PodUid;
    if (!this.#ranges.has(uid)) await this.#readAgain();
    let index = this.#ranges.get(uid);
    if (index === undefined) {
      index = this.#free();
      this.#ranges.set(uid, index);
      this.#unwritten.add(uid);
    }
    if (this.#unwritten.has(uid)) {
      await this.#write(uid, index);
      this.#unwritten.delete(uid);
    }
    return { firstHostId: this.#pool.firstId + index * this.#pool.length, length: this.#pool.length };
  }

  release(uid: PodUid): void {
    this.#ranges.delete(uid);
    this.#unknown.delete(uid);
    this.#unwritten.delete(uid);
  }

  /** What could not be read while the machine was short of something may be read by now. */
  async #readAgain(): Promise<void> {
    await mapAtMost(aFewAtOnce, [...this.#unknown.keys()], async (uid) => {
      try {
        const index = await this.#onDisk(uid);
        // The pod may have gone meanwhile.
        if (this.#unknown.delete(uid) && index !== undefined) this.#ranges.set(uid, index);
      } catch {
        // As before.
      }
    });
  }

  /** Undefined: the pod was given none. */
  async #onDisk(uid: PodUid): Promise<number | undefined> {
    const text = await ifThere(readFile(this.#file(uid), "utf8"));
    return text === undefined ? undefined : this.#indexIn(text, uid);
  }

  #free(): number {
    const [problem] = this.#unknown.values();
    if (problem !== undefined) throw new Error(`which user ids are free is not known: ${problem}`);
    const taken = new Set(this.#ranges.values());
    for (let index = 0; index < this.#pool.count; index++) if (!taken.has(index)) return index;
    throw new Error(`all ${this.#pool.count} ranges of user ids are taken by pods of this node`);
  }

  #indexIn(text: string, uid: PodUid): number {
    const index = this.#indexOf(hostIdIn(text, this.#pool.length));
    if (index !== undefined) return index;
    throw new Error(
      `${this.#file(uid)} does not hold one range of ${this.#pool.length} ids out of this node's; ` +
        "found other mappings, perhaps from other settings: stop that pod and remove its directory, or restore userNamespaces.idsPerPod",
    );
  }

  #indexOf(hostId: number | undefined): number | undefined {
    const index = ((hostId ?? Number.NaN) - this.#pool.firstId) / this.#pool.length;
    return Number.isInteger(index) && index >= 0 && index < this.#pool.count ? index : undefined;
  }

  async #write(uid: PodUid, index: number): Promise<void> {
    const mapping = {
      hostId: this.#pool.firstId + index * this.#pool.length,
      containerId: 0,
      length: this.#pool.length,
    };
    const path = this.#file(uid);
    await mkdir(join(this.#podsDir, uid), { recursive: true, mode: 0o750 });
    await saveFile(path, JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] }), 0o644);
  }

  #file(uid: string): string {
    return join(this.#podsDir, uid, "userns");
  }
}

export interface UserIdPool {
  readonly firstId: number;
  /** Ids per pod. */
  readonly length: number;
  /** How many pods can have a range. */
  readonly count: number;
}

/** The ids of this node when nothing else is set up: all above the first range, which is the host's own. */
export function defaultUserIdPool(idsPerPod = 65_536): UserIdPool {
  return { firstId: 65_536, length: idsPerPod, count: Math.floor((2 ** 32 - 65_536) / idsPerPod) };
}

/** The first id of the one range that the file gives for users and groups alike. */
function hostIdIn(text: string, length: number): number | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { uidMappings, gidMappings } = (parsed ?? {}) as Record<string, unknown>;
  const [uids, gids] = [uidMappings, gidMappings].map((list) => (Array.isArray(list) ? list[0] : undefined)) as (
    | { readonly hostId?: number; readonly length?: number }
    | null
    | undefined
  )[];
  return uids?.length === length && uids.hostId === gids?.hostId ? uids.hostId : undefined;
}
