import { readFile } from "node:fs/promises";
import {
  type Clock,
  hasCode,
  isAbort,
  type Logger,
  messageOf,
  savePrivateFile,
  waitFor,
} from "../../ground/base/index.ts";
import type { Node } from "../../ground/model/index.ts";

/** How long the API server may take to show the Node before pods are judged by the one that was known last. */
const patienceMs = 10_000;

/** The Node by which pods are judged, and how we know it. */
export interface NodeKnowledge {
  readonly node: Node;
  /** settings: the Node as we would make it, because none was ever seen. */
  readonly from: "api" | "disk" | "settings";
}

/**
 * The Node for decisions about pods. Nothing is known, and nothing decided, until the API server has shown the Node or
 * has had time to and did not; then the last one known counts, which is kept on disk for that, until the API server is
 * back. A Node that is deleted under a running agent stays known as it was.
 */
export class KnownNode {
  readonly #ports: KnownNodePorts;
  #knowledge: NodeKnowledge | undefined;
  #saved: string | undefined;
  #saving: Promise<void> = Promise.resolve();
  readonly #listeners = new Set<() => void>();

  constructor(ports: KnownNodePorts) {
    this.#ports = ports;
  }

  /** Undefined: not known yet. */
  get knowledge(): NodeKnowledge | undefined {
    return this.#knowledge;
  }

  /** Waits until a Node is known: by the API server, or as it was known last. */
  async whenKnown(signal: AbortSignal): Promise<NodeKnowledge> {
    while (this.#knowledge === undefined) {
      await waitFor(signal, (done) => this.onChange(done));
    }
    return this.#knowledge;
  }

  /** Told when a Node becomes known, and of every change; returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The API server has shown the Node, or a new version of it. */
  learn(node: Node): void {
    this.#become({ node, from: "api" });
    this.#saving = this.#saving.then(() => this.#save(node));
  }

  /** Gives the API server its time, then falls back on what was known last. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#ports.clock.sleep(patienceMs, signal);
    if (this.#knowledge !== undefined) return;
    const last = await this.#load(signal);
    // It may have answered while we read.
    if (this.#knowledge !== undefined) return;
    this.#ports.log.warn("The API server has not sent the Node; admission uses what is known of it", {
      from: last === undefined ? "settings" : "disk",
    });
    this.#become(last === undefined ? { node: this.#ports.ownNode(), from: "settings" } : { node: last, from: "disk" });
  }

  /** Resolves when what was learnt so far is on disk, or could not be written. */
  async flushed(): Promise<void> {
    await this.#saving;
  }

  #become(knowledge: NodeKnowledge): void {
    this.#knowledge = knowledge;
    for (const listener of this.#listeners) listener();
  }

  async #save(node: Node): Promise<void> {
    const text = JSON.stringify(essence(node));
    if (text === this.#saved) return;
    try {
      await savePrivateFile(this.#ports.path, text);
      this.#saved = text;
    } catch (error) {
      const problem = "Could not keep the Node on disk; without the API server pods would be judged by an older one";
      this.#ports.log.error(problem, error, { path: this.#ports.path });
    }
  }

  async #load(signal: AbortSignal): Promise<Node | undefined> {
    const { path, log, nodeName } = this.#ports;
    try {
      const parsed: unknown = JSON.parse(await readFile(path, { encoding: "utf8", signal }));
      const node = parsed as Node | null;
      if (node?.metadata?.name === nodeName) return node;
      log.warn("Ignoring the Node on disk: it belongs to another node", {
        path,
        found: node?.metadata?.name,
        nodeName,
      });
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      if (!hasCode(error, "ENOENT")) {
        log.warn("Ignoring the Node on disk", { path, err: messageOf(error) });
      }
    }
    return undefined;
  }
}

export interface KnownNodePorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
  readonly path: string;
  /** The Node as we would make it. */
  readonly ownNode: () => Node;
}

/** What pods are judged by, without what changes with every heartbeat. */
function essence({ metadata, spec, status }: Node): Node {
  const { name, uid, labels, annotations } = metadata ?? {};
  return {
    metadata: { ...(name !== undefined && { name }), ...(uid !== undefined && { uid }), labels, annotations },
    spec: { taints: spec?.taints, unschedulable: spec?.unschedulable },
    status: { capacity: status?.capacity, allocatable: status?.allocatable, addresses: status?.addresses },
  };
}
