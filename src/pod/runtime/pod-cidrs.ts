import type { RuntimeService } from "../../connections/cri/index.ts";

/** The networks that the cluster has given this node for its pods, as the runtime was last told of them. */
export class PodCidrs {
  readonly #runtime: Pick<RuntimeService, "updateRuntimeConfig">;
  #told: string | undefined;

  constructor(runtime: Pick<RuntimeService, "updateRuntimeConfig">) {
    this.#runtime = runtime;
  }

  /** Passes them on to the runtime when they are others than before; resolves with whether they were. */
  async tell(cidrs: readonly string[], signal: AbortSignal): Promise<boolean> {
    const podCidr = cidrs.join(",");
    if (podCidr === this.#told) return false;
    await this.#runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } }, { signal });
    this.#told = podCidr;
    return true;
  }
}
