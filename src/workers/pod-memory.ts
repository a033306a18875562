import { readFileSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KeyedWorkers, type Logger, type TaskScope } from "../base/index.ts";
import type { PodUid } from "../model/index.ts";
import type { PodMemory, PodMemoryPort } from "./ports.ts";

/**
 * Keeps what must outlive the agent in the pod's directory: its last status and its back-off. The newest version
 * wins; a file that can't be read counts as empty, since everything in it can be learnt anew.
 */
export class PodMemoryFiles implements PodMemoryPort {
  readonly #podsDir: string;
  readonly #log: Logger;
  readonly #pending = new Map<PodUid, string>();
  readonly #written = new Map<PodUid, string>();
  readonly #writers: KeyedWorkers<PodUid>;
  readonly #underWay = new Map<PodUid, Promise<void>>();

  constructor(scope: TaskScope, options: { readonly podsDir: string; readonly log: Logger }) {
    this.#podsDir = options.podsDir;
    this.#log = options.log;
    this.#writers = new KeyedWorkers(scope, (uid) => this.#write(uid));
  }

  load(uid: PodUid): PodMemory {
    const path = this.#path(uid);
    try {
      const parsed: unknown = JSON.parse(readFileSync(path, "utf8"));
      if (typeof parsed === "object" && parsed !== null) return parsed as PodMemory;
      this.#log.warn("Ignoring a pod memory file that is not an object; the pod's past is lost", { path });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) {
        this.#log.warn("Ignoring a pod memory file that can't be read; the pod's past is lost", { path, err: error });
      }
    }
    return {};
  }

  save(uid: PodUid, memory: PodMemory): void {
    const text = JSON.stringify(memory);
    if (this.#written.get(uid) === text) return;
    this.#pending.set(uid, text);
    this.#writers.wake(uid);
  }

  /** Resolves when nothing will be written into the pod's directory any more, which may then be removed. */
  async forget(uid: PodUid): Promise<void> {
    this.#pending.delete(uid);
    await this.#underWay.get(uid);
    this.#written.delete(uid);
  }

  async #write(uid: PodUid): Promise<void> {
    const write = this.#writePending(uid);
    this.#underWay.set(uid, write);
    await write;
    this.#underWay.delete(uid);
  }

  async #writePending(uid: PodUid): Promise<void> {
    const text = this.#pending.get(uid);
    this.#pending.delete(uid);
    if (text === undefined) return;
    const path = this.#path(uid);
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o750 });
      await writeFile(`${path}.new`, text, { mode: 0o600 });
      await rename(`${path}.new`, path);
      this.#written.set(uid, text);
    } catch (error) {
      this.#log.error("Could not save a pod's memory; a restart of the agent would forget its status", error, { path });
    }
  }

  #path(uid: PodUid): string {
    return join(this.#podsDir, uid, "nodelet.json");
  }
}
