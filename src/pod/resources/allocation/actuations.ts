import type { Logger } from "../../../ground/base/index.ts";
import type { ContainerResources, PodUid } from "../../../ground/model/index.ts";
import { KeptResources } from "./kept-resources.ts";

/** What the runtime was last told that containers may use. */
export class Actuations {
  readonly #kept: KeptResources;

  constructor(path: string, log: Logger) {
    this.#kept = new KeptResources(path, "what containers were given", log);
  }

  load(): Promise<void> {
    return this.#kept.load();
  }

  /** Undefined: nobody has noted it. */
  of(uid: PodUid, container: string): ContainerResources | undefined {
    const containers = this.#kept.of(uid);
    return containers !== undefined && Object.hasOwn(containers, container) ? containers[container] : undefined;
  }

  /** The container is made, or was changed, with these resources. Where the note is lost the change is made again. */
  note(uid: PodUid, container: string, resources: ContainerResources): void {
    this.#kept.set(uid, { ...this.#kept.of(uid), [container]: resources });
  }

  retain(isKnown: (uid: PodUid) => boolean): void {
    this.#kept.retain(isKnown);
  }

  forget(uid: PodUid): void {
    this.#kept.forget(uid);
  }
}
