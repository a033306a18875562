import type { Logger } from "../../../ground/base/index.ts";
import type { AllocatedResources, PodUid } from "../../../ground/model/index.ts";
import { ResourcesFile } from "./resources-file.ts";

/** Resources by pod and container, in memory and in a file that follows in the background. */
export class KeptResources {
  readonly #byPod = new Map<PodUid, AllocatedResources>();
  readonly #file: ResourcesFile;
  readonly #log: Logger;
  readonly #what: string;
  #saving: Promise<void> = Promise.resolve();

  /** `what` they are, for people who read that they could not be saved. */
  constructor(path: string, what: string, log: Logger) {
    this.#what = what;
    this.#log = log;
    this.#file = new ResourcesFile(path, log, () => this.#byPod);
  }

  /** What an earlier run of this agent, or of another, has left. */
  async load(): Promise<void> {
    for (const [uid, resources] of await this.#file.read()) this.#byPod.set(uid, resources);
  }

  of(uid: PodUid): AllocatedResources | undefined {
    return this.#byPod.get(uid);
  }

  set(uid: PodUid, resources: AllocatedResources): void {
    this.#byPod.set(uid, resources);
    this.#saveSoon();
  }

  forget(uid: PodUid): void {
    if (this.#byPod.delete(uid)) this.#saveSoon();
  }

  /** Forgets pods that went while no agent was there. */
  retain(isKnown: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#byPod.keys()]) if (!isKnown(uid)) this.forget(uid);
  }

  /** Resolves when what is so now would outlive the agent. What could not be saved is tried again. */
  saved(): Promise<void> {
    return this.#saving.catch(() => this.#save());
  }

  #saveSoon(): void {
    this.#save().catch((error: unknown) => {
      this.#log.error(`Could not save ${this.#what}; the next change is another try`, error);
    });
  }

  #save(): Promise<void> {
    this.#saving = this.#file.save();
    return this.#saving;
  }
}
