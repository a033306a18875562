import { type Life, lifeOf } from "../mapping/container-status.ts";
import type { PartOfPod } from "./context.ts";
import type { Looks } from "./looks.ts";

/** Never started, or started in vain: Docker lists both as "created". */
interface Unstarted {
  readonly step: "created" | "exited";
  readonly container: PartOfPod;
}

/** Containers that Docker lists as "created", and what they really are. */
export class UnstartedContainers {
  readonly #looks: Looks;
  readonly #known = new Map<string, Unstarted>();

  constructor(looks: Looks) {
    this.#looks = looks;
  }

  /** Made by this shim. */
  made(container: PartOfPod): void {
    this.#known.set(container.id, { step: "created", container });
  }

  /** One that may be started, where it need not be asked for. */
  startable(id: string): PartOfPod | undefined {
    const known = this.#known.get(id);
    return known?.step === "created" ? known.container : undefined;
  }

  /** From here on only Docker knows how far it is. */
  forget(id: string): void {
    this.#known.delete(id);
    this.#looks.forget(id);
  }

  forgetAllBut(ids: ReadonlySet<string>): void {
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
  }

  async step(id: string, signal: AbortSignal): Promise<Life["step"]> {
    const known = this.#known.get(id);
    if (known !== undefined) return known.step;
    const look = await this.#looks.at(id, signal);
    if (look.type === "gone") return "exited";
    // It is being started, then.
    if (look.type === "busy") return "created";
    const { step } = lifeOf(look.container);
    if (step === "exited") this.#known.set(id, { step, container: look.container });
    return step;
  }
}
