import { ContainerState, type CriClient, PodSandboxState } from "../../../src/connections/cri/index.ts";
import { runtimeLabels } from "../../../src/pod/runtime/index.ts";

/** Compares what runs of some pods with what ran, by the runtime's own word: a second copy shows in no status. */
export class RuntimeWatch {
  readonly changes: string[] = [];
  readonly #cri: CriClient;
  readonly #uids: ReadonlySet<string>;
  #last: ReadonlySet<string>;

  private constructor(cri: CriClient, uids: ReadonlySet<string>, first: ReadonlySet<string>) {
    this.#cri = cri;
    this.#uids = uids;
    this.#last = first;
  }

  static async start(cri: CriClient, uids: ReadonlySet<string>): Promise<RuntimeWatch> {
    return new RuntimeWatch(cri, uids, await listLive(cri, uids));
  }

  get size(): number {
    return this.#last.size;
  }

  /** The runtime must answer. */
  async look(): Promise<void> {
    const now = await listLive(this.#cri, this.#uids);
    for (const one of this.#last) if (!now.has(one)) this.changes.push(`${one} runs no more`);
    for (const one of now) if (!this.#last.has(one)) this.changes.push(`${one} has come`);
    this.#last = now;
  }
}

async function listLive({ runtime }: CriClient, uids: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const { items } = await runtime.listPodSandbox({ filter: undefined });
  const { containers } = await runtime.listContainers({ filter: undefined });
  const isAsked = (labels: Readonly<Record<string, string>>): boolean => uids.has(labels[runtimeLabels.podUid] ?? "");
  return new Set([
    ...items
      .filter(({ labels, state }) => isAsked(labels) && state === PodSandboxState.SANDBOX_READY)
      .map(({ id, metadata }) => `sandbox ${id} of ${metadata?.name}`),
    ...containers
      .filter(({ labels, state }) => isAsked(labels) && state === ContainerState.CONTAINER_RUNNING)
      .map(({ id, labels }) => `container ${id} of ${labels[runtimeLabels.podName]}`),
  ]);
}
