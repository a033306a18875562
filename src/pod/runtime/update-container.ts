import { CriError, type RuntimeService } from "../../connections/cri/index.ts";
import {
  type Container,
  containersOf,
  type IdentifiedPod,
  type ObservedContainer,
  type PodUid,
  type SandboxId,
  uidOf,
} from "../../ground/model/index.ts";
import {
  type CpuAndMemoryPlacement,
  containerResources,
  overheadResources,
  type ResourceSettings,
  sandboxResources,
} from "./mapping/index.ts";

/** Tells the runtime what running containers may use from now on. */
export class ContainerUpdates {
  readonly #runtime: RuntimeService;
  readonly #settings: ResourceSettings;
  readonly #placeOf: (uid: PodUid, container: string) => CpuAndMemoryPlacement;
  /** Older runtimes have no word for it. */
  #tellsSandboxes = true;

  /** `placeOf`: where a container runs, which stays as it is. */
  constructor(
    runtime: RuntimeService,
    settings: ResourceSettings,
    placeOf: (uid: PodUid, container: string) => CpuAndMemoryPlacement,
  ) {
    this.#runtime = runtime;
    this.#settings = settings;
    this.#placeOf = placeOf;
  }

  async update(
    pod: IdentifiedPod,
    { id: containerId }: ObservedContainer,
    container: Container,
    signal: AbortSignal,
  ): Promise<void> {
    const all = containerResources(pod, container, this.#settings, this.#placeOf(uidOf(pod), container.name));
    // Huge pages can't be resized; a list of them would be taken for a change.
    const linux = { ...all, hugepageLimits: [] };
    await this.#runtime.updateContainerResources(
      { containerId, linux, windows: undefined, annotations: {} },
      { signal },
    );
  }

  /** For sandboxes that are machines of their own. What the runtime makes of it is its own business. */
  async tellSandbox(pod: IdentifiedPod, podSandboxId: SandboxId, signal: AbortSignal): Promise<void> {
    if (!this.#tellsSandboxes) return;
    try {
      await this.#runtime.updatePodSandboxResources(
        {
          podSandboxId,
          overhead: overheadResources(pod, this.#settings),
          resources: sandboxResources(pod, this.#settings, this.#hasExclusiveCpus(pod)),
        },
        { signal },
      );
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof CriError && error.code === "Unimplemented") this.#tellsSandboxes = false;
    }
  }

  #hasExclusiveCpus(pod: IdentifiedPod): boolean {
    return containersOf(pod).some(({ container }) => this.#placeOf(uidOf(pod), container.name).exclusiveCpus);
  }

  /** In bytes. */
  async memoryUsage({ id, name }: ObservedContainer, signal: AbortSignal): Promise<bigint> {
    const { stats } = await this.#runtime.containerStats({ containerId: id }, { signal });
    const usage = stats?.memory?.usageBytes?.value || stats?.memory?.workingSetBytes?.value;
    if (usage === undefined) throw new Error(`missing container "${name}" memory usage`);
    return usage;
  }
}
