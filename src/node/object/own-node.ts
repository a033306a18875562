import {
  Informer,
  isNewer,
  type ListWatchPorts,
  resources,
  withoutManagedFields,
} from "../../connections/kube/index.ts";
import type { Node } from "../../ground/model/index.ts";

/** This node's Node as the API server has it: one watch for whoever asks, and the answers to our own writes. */
export class OwnNode {
  readonly #informer: Informer<Node>;
  readonly #listeners = new Set<(node: Node | undefined) => void>();
  #node: Node | undefined;

  constructor(nodeName: string, ports: ListWatchPorts) {
    this.#informer = new Informer<Node>(
      { resource: resources.nodes, fieldSelector: `metadata.name=${nodeName}`, keep: withoutManagedFields },
      ports,
    );
    this.#informer.onChange((change) => this.#become(change.type === "deleted" ? undefined : change.object));
  }

  /** Undefined while there is none, or none is known. */
  get node(): Node | undefined {
    return this.#node;
  }

  /** Whether the API server shows it as ready. */
  get isReady(): boolean {
    return this.#node?.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  }

  /** The API server has said whether there is one. */
  get hasSynced(): boolean {
    return this.#informer.hasSynced;
  }

  synced(signal: AbortSignal): Promise<void> {
    return this.#informer.synced(signal);
  }

  /** Told of every change of the Node; returns how to stop that. */
  onNode(listener: (node: Node | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The answer to a write of ours. The watch may have brought what others wrote since. */
  answered(node: Node): void {
    if (this.#node === undefined || isNewer(node, this.#node)) this.#become(node);
  }

  #become(node: Node | undefined): void {
    this.#node = node && withoutManagedFields(node);
    for (const listener of this.#listeners) listener(this.#node);
  }

  /** The server may be back: do not wait for the next try. */
  hasten(): void {
    this.#informer.hasten();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#informer.run(signal);
  }
}
