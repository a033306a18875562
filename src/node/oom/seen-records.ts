import { readFile } from "node:fs/promises";
import { hasCode, savePrivateFile } from "../../ground/base/index.ts";

/** How far the kernel's log was read, so that another agent on the same boot does not tell of the same again. */
export class SeenRecords {
  readonly #path: string;
  readonly #bootId: string;

  constructor(path: string, bootId: string) {
    this.#path = path;
    this.#bootId = bootId;
  }

  /** The last record that was told of; -1: none of this boot; undefined: no agent has ever read here. */
  async load(): Promise<number | undefined> {
    try {
      const { bootId, seq } = JSON.parse(await readFile(this.#path, "utf8")) ?? {};
      if (bootId !== this.#bootId) return -1;
      return Number.isSafeInteger(seq) ? seq : undefined;
    } catch (error) {
      if (hasCode(error, "ENOENT") || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  async save(seq: number): Promise<void> {
    await savePrivateFile(this.#path, JSON.stringify({ bootId: this.#bootId, seq }));
  }
}
