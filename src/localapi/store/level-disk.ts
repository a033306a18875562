import { mkdir } from "node:fs/promises";
import { explain } from "../../base/index.ts";
import type { ApiObject } from "../object.ts";
import type { Disk, StoredState } from "./store.ts";

/** What is used of the library's database. */
interface Level {
  iterator(): AsyncIterable<[string, string]>;
  batch(operations: Operation[], options: { sync: boolean }): Promise<void>;
  close(): Promise<void>;
}

type Operation = { type: "put"; key: string; value: string } | { type: "del"; key: string };

const revisionKey = "revision";
const objectPrefix = "object ";

/**
 * Objects in LevelDB. All are read at the start and never again; writes that come while one is under way go to the
 * disk together.
 */
export class LevelDisk implements Disk {
  readonly #level: Level;
  /** What the next write to the disk will hold; undefined when nothing waits. */
  #batch: Operation[] | undefined;
  #lastWrite: Promise<void> = Promise.resolve();
  #failure: unknown;

  private constructor(level: Level) {
    this.#level = level;
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
    return { disk: new LevelDisk(level), state: await readState(level) };
  }

  write(revision: number, resource: string, key: string, object: ApiObject | undefined): void {
    const objectKey = `${objectPrefix}${resource} ${key}`;
    if (this.#batch === undefined) {
      this.#batch = [];
      this.#lastWrite = this.#lastWrite.then(() => this.#writeBatch());
    }
    this.#batch.push(
      object === undefined
        ? { type: "del", key: objectKey }
        : { type: "put", key: objectKey, value: JSON.stringify(object) },
      { type: "put", key: revisionKey, value: String(revision) },
    );
  }

  async flushed(): Promise<void> {
    await this.#lastWrite;
    if (this.#failure !== undefined) throw new Error("The objects can't be stored", { cause: this.#failure });
  }

  async close(): Promise<void> {
    await this.#lastWrite;
    await this.#level.close();
  }

  /** Never rejects: whoever waits for the write learns of its failure, and so does everybody after. */
  async #writeBatch(): Promise<void> {
    const operations = this.#batch ?? [];
    this.#batch = undefined;
    try {
      await this.#level.batch(operations, { sync: true });
    } catch (error) {
      this.#failure ??= error;
    }
  }
}

async function readState(level: Level): Promise<StoredState> {
  const objects: { resource: string; object: ApiObject }[] = [];
  let revision = 1;
  for await (const [key, value] of level.iterator()) {
    if (key === revisionKey) revision = Number(value);
    else if (key.startsWith(objectPrefix)) {
      const [resource = ""] = key.slice(objectPrefix.length).split(" ");
      objects.push({ resource, object: JSON.parse(value) });
    }
  }
  return { revision, objects };
}
