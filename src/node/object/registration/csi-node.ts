import { isAlreadyExists, type KubeClient, resources } from "../../../connections/kube/index.ts";
import { type Clock, isAbort, type Logger, messageOf } from "../../../ground/base/index.ts";
import { type CSINode, jsonEqual, type Node, type OwnerReference } from "../../../ground/model/index.ts";

export interface CsiNodePorts {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** The storage problem has changed. */
  readonly onChange: () => void;
}

const notYet = "CSINode is not yet initialized";
const firstWaitMs = 30;
const waitFactor = 8;
const longestWaitMs = 60_000;

const migratedAnnotation = "storage.alpha.kubernetes.io/migrated-plugins";
/** The volume kinds that are served by CSI drivers since Kubernetes 1.33, whatever the pod asks for. */
const migratedPlugins = [
  "kubernetes.io/aws-ebs",
  "kubernetes.io/azure-disk",
  "kubernetes.io/azure-file",
  "kubernetes.io/cinder",
  "kubernetes.io/gce-pd",
  "kubernetes.io/portworx-volume",
  "kubernetes.io/vsphere-volume",
].join(",");

/** Sees to it that the node has its CSINode, without which drivers cannot say what they offer. */
export class CsiNodeKeeper {
  readonly #ports: CsiNodePorts;
  #problem: string | undefined = notYet;

  constructor(ports: CsiNodePorts) {
    this.#ports = ports;
  }

  /** Why CSI volumes cannot be used yet. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves once the object is there and belongs to this Node. */
  async ensure(node: Node, signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#ports;
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * waitFactor, longestWaitMs)) {
      try {
        await this.#ensureOnce(node, signal);
        this.#now(undefined);
        return;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.debug(1, "Cannot make the CSINode; will try again", { err: messageOf(error) });
        this.#now(`failed to initialize CSINode: ${messageOf(error)}`);
      }
      await clock.sleep(waitMs * (1 + random() / 10), signal);
    }
  }

  async #ensureOnce(node: Node, signal: AbortSignal): Promise<void> {
    const { client } = this.#ports;
    const name = node.metadata?.name ?? "";
    const owner: OwnerReference = { apiVersion: "v1", kind: "Node", name, uid: node.metadata?.uid ?? "" };
    const wanted: CSINode = {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { name, annotations: { [migratedAnnotation]: migratedPlugins }, ownerReferences: [owner] },
      spec: { drivers: [] },
    };
    try {
      await client.create(resources.csiNodes, {}, wanted, signal);
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const existing = await client.get(resources.csiNodes, { name }, {}, signal);
    const { annotations, ownerReferences } = existing.metadata ?? {};
    const isOurs = jsonEqual(ownerReferences, [owner]) && annotations?.[migratedAnnotation] === migratedPlugins;
    if (isOurs) return;
    const metadata = {
      ...existing.metadata,
      annotations: { ...annotations, [migratedAnnotation]: migratedPlugins },
      ownerReferences: [owner],
    };
    await client.update(resources.csiNodes, { name }, { ...existing, metadata }, signal);
  }

  #now(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#ports.onChange();
  }
}
