import { readFile } from "node:fs/promises";
import { deepFreeze, hasCode, isShortage, type Logger, messageOf, savePrivateFile } from "../../ground/base/index.ts";
import { configHashAnnotation, containerHash, type IdentifiedPod } from "../../ground/model/index.ts";
import type { StartedPod } from "./started-pod.ts";

/** A static pod that the runtime has containers of. */
export type StartedStaticPod = Omit<StartedPod, "source" | "isLive">;

/**
 * The UID of a static pod is a digest that each agent reckons in its own way, so that another agent's static pods would
 * all be stopped and started anew when this one takes over the node. A pod that was started from a file that nobody
 * touched since is the pod that the file describes: it keeps its UID, and with it its containers, volumes and mirror.
 */
export class StaticPodAdoption {
  #started: readonly StartedStaticPod[];
  readonly #path: string;
  readonly #log: Logger;
  /** From the UID that we would give to the one that is kept. */
  #adopted: ReadonlyMap<string, string> = new Map();

  /** `started`: as far as it is known already. */
  constructor(started: readonly StartedStaticPod[], path: string, log: Logger) {
    this.#started = started;
    this.#path = path;
    this.#log = log;
  }

  /**
   * What the runtime has and what earlier runs adopted must be known before the first manifest is read. Throws while the
   * machine lacks what it takes to read it: pods would be given other UIDs, and be stopped and started anew.
   */
  async restore(started = this.#started): Promise<void> {
    this.#started = started;
    try {
      const saved: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      if (!isTextByText(saved)) throw new Error(`found ${typeof saved}, want an object from UID to UID`);
      this.#adopted = new Map(Object.entries(saved));
    } catch (error) {
      if (hasCode(error, "ENOENT")) return;
      if (isShortage(error)) throw error;
      this.#log.warn("Cannot read which static pods were taken over from another agent; going on without", {
        path: this.#path,
        reason: messageOf(error),
      });
    }
  }

  /** The pod under the UID it runs with. `unchangedSinceMs`: nobody wrote, moved or replaced its file after that. */
  async adopt(pod: IdentifiedPod, unchangedSinceMs: number): Promise<IdentifiedPod> {
    const { uid, name, namespace } = pod.metadata;
    const known = this.#adopted.get(uid);
    if (known !== undefined) return withUid(pod, known);
    const candidates = this.#started.filter((started) => started.name === name && started.namespace === namespace);
    if (candidates.some((started) => started.uid === uid)) return pod;
    const found = candidates.find((started) => unchangedSinceMs < started.startedAtMs && describes(pod, started));
    if (found === undefined) return pod;
    this.#log.info("Taking over a static pod that another agent started", { pod: name, namespace, uid: found.uid });
    this.#adopted = new Map([...this.#adopted, [uid, found.uid]]);
    await this.#save();
    return withUid(pod, found.uid);
  }

  async #save(): Promise<void> {
    try {
      await savePrivateFile(this.#path, JSON.stringify(Object.fromEntries(this.#adopted)));
    } catch (error) {
      this.#log.error("Cannot save which static pods were taken over from another agent", error, { path: this.#path });
    }
  }
}

/** Whether the started pod may have been made from this one: what the runtime can tell of it is the same. */
function describes(pod: IdentifiedPod, started: StartedStaticPod): boolean {
  const { containers, initContainers = [] } = pod.spec;
  const labels = Object.entries(pod.metadata.labels ?? {});
  return (
    labels.every(([key, value]) => started.labels[key] === value) &&
    containers.every((container) => started.containerHashes.get(container.name) === containerHash(container)) &&
    initContainers.every((container) => {
      const hash = started.containerHashes.get(container.name);
      // Dead init containers may have been removed.
      return hash === undefined || hash === containerHash(container);
    })
  );
}

function withUid(pod: IdentifiedPod, uid: string): IdentifiedPod {
  const annotations = { ...pod.metadata.annotations, [configHashAnnotation]: uid };
  return deepFreeze({ ...pod, metadata: { ...pod.metadata, uid, annotations } });
}

function isTextByText(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((item) => typeof item === "string");
}
