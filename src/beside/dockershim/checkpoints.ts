import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ifThere, type Logger, savePrivateFile } from "../../ground/base/index.ts";
import { checkpointText, parseCheckpoint, type SandboxCheckpoint } from "./checkpoint-form.ts";

const sandboxId = /^[0-9a-f]{64}$/;

/** Notes of sandboxes, one file for each. */
export class Checkpoints {
  readonly #directory: string;
  readonly #log: Logger;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#log = log;
  }

  async save(id: string, checkpoint: SandboxCheckpoint): Promise<void> {
    await savePrivateFile(join(this.#directory, id), checkpointText(checkpoint));
  }

  /** Undefined when there is none. One that is damaged is removed: it would only be in the way. */
  async read(id: string): Promise<SandboxCheckpoint | undefined> {
    if (!sandboxId.test(id)) return undefined;
    const content = await ifThere(readFile(join(this.#directory, id), "utf8"));
    if (content === undefined) return undefined;
    const checkpoint = parseCheckpoint(content);
    if (checkpoint === undefined) {
      this.#log.warn("checkpoint is corrupted, and is removed", { sandbox: id });
      await this.remove(id);
    }
    return checkpoint;
  }

  async remove(id: string): Promise<void> {
    if (!sandboxId.test(id)) return;
    // One for which there was no room is left unfinished.
    for (const name of [id, `${id}.tmp`]) await rm(join(this.#directory, name), { force: true });
  }

  async list(): Promise<readonly string[]> {
    return (await ifThere(readdir(this.#directory), [])).filter((name) => sandboxId.test(name));
  }
}
