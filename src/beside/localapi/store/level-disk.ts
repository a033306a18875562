import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { type Clock, explain } from "../../../ground/base/index.ts";
import type { ApiObject } from "../object.ts";
import type { Disk, DiskOwner, StoredState } from "./store.ts";

/** What is used of the library's database. */
export interface Level {
  open(): Promise<void>;
  iterator(): AsyncIterable<[string, string]>;
  get(key: string): Promise<string | undefined>;
  batch(operations: Operation[], options: { sync: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** What goes to the disk at once, and the revision that the disk has then. */
interface Batch {
  readonly operations: Operation[];
  revision: number;
}

/** The revision that the disk told at the start, and the one from which this life of the server goes on. */
interface Beginning {
  readonly found: number;
  readonly from: number;
}

type Operation = { type: "put"; key: string; value: string } | { type: "del"; key: string };

const revisionKey = "revision";
const objectPrefix = "object ";
/** Clients take "0" for "any version will do". */
const firstRevision = 1;
/** A full disk is seldom emptied sooner. */
const mendEveryMs = 5_000;
/** More changes than any life of the server brings between two copies of its directory; numbers last for millions of lives. */
const shortestLeap = 2 ** 20;
const longestLeap = 2 ** 30;

/**
 * Objects in LevelDB. All are read at the start and never again; writes that come while one is under way go to the
 * disk together. After a failed write LevelDB takes no more until it is opened again.
 */
export class LevelDisk implements Disk {
  readonly #level: Level;
  #owner: DiskOwner | undefined;
  /** What the next write to the disk will hold; undefined when nothing waits. */
  #batch: Batch | undefined;
  /** Rejects when what was written last, or anything before it, did not reach the disk. */
  #lastWrite: Promise<void> = Promise.resolve();
  #isBroken = false;
  readonly #breaks = new EventTarget();
  readonly #begin: Beginning;

  constructor(level: Level, begin: Beginning = { found: firstRevision, from: firstRevision }) {
    this.#level = level;
    this.#begin = begin;
  }

  static async open(directory: string): Promise<{ readonly disk: LevelDisk; readonly state: StoredState }> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const { ClassicLevel } = await import("classic-level");
    const level = new ClassicLevel<string, string>(directory, { keyEncoding: "utf8", valueEncoding: "utf8" });
    try {
      await level.open();
    } catch (error) {
      const hint = "Is another local API server using it? Stop that one, or choose another directory.";
      throw new Error(`The stored objects in ${directory} can't be opened: ${explain(error)}. ${hint}`, {
        cause: error,
      });
    }
    const { revision: found, objects } = await readState(level);
    // The directory may be an older copy: its clients know revisions that came after it, and would take other changes of
    // the same numbers for those. No life of the server uses a number that another one may have used.
    const revision = found + randomInt(shortestLeap, longestLeap);
    return { disk: new LevelDisk(level, { found, from: revision }), state: { revision, objects } };
  }

  attach(owner: DiskOwner): void {
    this.#owner = owner;
  }

  write(revision: number, resource: string, key: string, text: string | undefined): void {
    const objectKey = `${objectPrefix}${resource} ${key}`;
    if (this.#batch === undefined) {
      const batch: Batch = { operations: [], revision };
      this.#batch = batch;
      this.#lastWrite = this.#lastWrite.then(() => this.#writeBatch(batch));
      // Whoever waits for it hears of a failure, and the owner does; nobody need wait.
      this.#lastWrite.catch(() => {});
    }
    this.#batch.revision = revision;
    this.#batch.operations.push(
      text === undefined ? { type: "del", key: objectKey } : { type: "put", key: objectKey, value: text },
    );
  }

  async flushed(): Promise<void> {
    await this.#lastWrite;
  }

  /** Opens the database again after a failure, as soon as it can be written. Ends with the signal. */
  async keepWritable(clock: Clock, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (!this.#isBroken) await once(this.#breaks, "broken", { signal });
      await clock.sleep(mendEveryMs, signal);
      const revision = await this.#reopened();
      if (revision === undefined) continue;
      this.#owner?.mended(revision);
      this.#isBroken = false;
      this.#lastWrite = Promise.resolve();
    }
  }

  async close(): Promise<void> {
    await this.#lastWrite.catch(() => {});
    await this.#level.close();
  }

  async #writeBatch({ operations, revision }: Batch): Promise<void> {
    this.#batch = undefined;
    try {
      const value = String(revision);
      await this.#level.batch([...operations, { type: "put", key: revisionKey, value }], { sync: true });
    } catch (error) {
      // What came meanwhile builds on what is lost.
      this.#batch = undefined;
      this.#isBroken = true;
      this.#owner?.failed(error);
      this.#breaks.dispatchEvent(new Event("broken"));
      throw new Error("The objects can't be stored", { cause: error });
    }
    this.#owner?.stored(revision);
  }

  /** The revision that the disk has, written once more to see that it can be; undefined when it can't. */
  async #reopened(): Promise<number | undefined> {
    try {
      await this.#level.close();
      await this.#level.open();
      const revision = Number((await this.#level.get(revisionKey)) ?? firstRevision);
      await this.#level.batch([{ type: "put", key: revisionKey, value: String(revision) }], { sync: true });
      // Where nothing has been written yet, the disk still tells of the life before.
      return revision === this.#begin.found ? this.#begin.from : revision;
    } catch {
      return undefined;
    }
  }
}

async function readState(level: Level): Promise<StoredState> {
  const objects: { resource: string; object: ApiObject }[] = [];
  let revision = firstRevision;
  for await (const [key, value] of level.iterator()) {
    if (key === revisionKey) revision = Number(value);
    else if (key.startsWith(objectPrefix)) {
      const [resource = ""] = key.slice(objectPrefix.length).split(" ");
      objects.push({ resource, object: JSON.parse(value) });
    }
  }
  return { revision, objects };
}
