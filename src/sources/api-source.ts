import { readFile } from "node:fs/promises";
import { type Clock, type Logger, messageOf, Pause, savePrivateFile } from "../base/index.ts";
import type { IdentifiedPod, Pod } from "../model/index.ts";

/** How long the API may take to say which pods it wants before the last known ones are started without it. */
const patienceMs = 10_000;

/**
 * Pods that the API has bound to this node. The list is kept on disk as well: a node that comes up while the API is
 * away starts the pods it knew, and reconciles when the API is back.
 */
export class ApiSource {
  readonly #ports: ApiSourcePorts;
  readonly #checkpoint: string;
  readonly #pause: Pause;
  #changed = true;

  constructor(settings: { readonly checkpoint: string }, ports: ApiSourcePorts) {
    this.#checkpoint = settings.checkpoint;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** The API's pods may have changed. */
  wake(): void {
    this.#changed = true;
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#firstList(signal);
    while (!signal.aborted) {
      if (this.#ports.hasSynced() && this.#changed) {
        this.#changed = false;
        const pods = this.#ports.pods();
        await this.#ports.deliver(pods, signal);
        await this.#save(pods);
      } else await this.#pause.wait(forever, signal);
    }
  }

  async #firstList(signal: AbortSignal): Promise<void> {
    if (this.#ports.hasSynced()) return;
    await this.#pause.wait(patienceMs, signal);
    if (signal.aborted || this.#ports.hasSynced()) return;
    const known = await this.#load();
    if (known === undefined) return;
    this.#ports.log.warn("The API server does not answer; going on with the pods it wanted last", {
      pods: known.length,
    });
    await this.#ports.deliver(known, signal);
  }

  async #load(): Promise<readonly IdentifiedPod[] | undefined> {
    try {
      const parsed: unknown = JSON.parse(await readFile(this.#checkpoint, "utf8"));
      if (!Array.isArray(parsed)) throw new Error("it does not hold a list");
      return parsed.filter(isIdentified);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) {
        this.#ports.log.warn("Ignoring the list of pods on disk", { path: this.#checkpoint, err: messageOf(error) });
      }
      return undefined;
    }
  }

  async #save(pods: readonly IdentifiedPod[]): Promise<void> {
    try {
      await savePrivateFile(this.#checkpoint, JSON.stringify(pods));
    } catch (error) {
      const problem = "Could not keep the list of pods on disk; without the API they would not start after a reboot";
      this.#ports.log.error(problem, error, { path: this.#checkpoint });
    }
  }
}

export interface ApiSourcePorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hasSynced: () => boolean;
  readonly pods: () => readonly IdentifiedPod[];
  readonly deliver: (pods: readonly IdentifiedPod[], signal: AbortSignal) => Promise<unknown>;
}

const forever = 2 ** 31 - 1;

/** Whether the API's object has what everything behind the sources relies on. */
export function isIdentified(pod: Pod): pod is IdentifiedPod {
  const { name, namespace, uid } = pod.metadata ?? {};
  return name !== undefined && namespace !== undefined && uid !== undefined && pod.spec !== undefined;
}
