import { getObject, isNotFound, type KubeClient, resources } from "../../../connections/kube/index.ts";
import type { CsiNodeInfo, CsiNodeRecords } from "../../../connections/plugins/index.ts";
import { type Clock, isAbort, Limiter, type Logger, messageOf, Topic } from "../../../ground/base/index.ts";
import { type CSINode, jsonEqual, type Node } from "../../../ground/model/index.ts";
import { csiNodeFor, withDriver, withoutDriver } from "./csi-node-object.ts";
import { comingDriver, leavingDriver, type MetadataChange, TopologyCollisionError } from "./driver-metadata.ts";

export interface CsiNodePorts {
  readonly client: Pick<KubeClient, "get" | "create" | "update" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** The Node as the API server has it after a change of its metadata. */
  readonly onNode: (node: Node) => void;
}

const notYet = "CSINode is not yet initialized";
const ensureWaits = { firstMs: 30, factor: 8, longestMs: 60_000 };
const driverTries = { tries: 4, firstMs: 10, factor: 5 };

/**
 * Keeps the node's CSINode, as its only writer: sees to it that there is one, and that it lists the drivers which
 * announce themselves. What drivers say of the Node itself, its id with them and its topology, goes into its metadata.
 */
export class CsiNodeKeeper implements CsiNodeRecords {
  readonly changed = new Topic();
  readonly #name: string;
  readonly #ports: CsiNodePorts;
  /** Each change reads, then writes: one after the other none is refused for another's sake. */
  readonly #turns = new Limiter(1);
  #problem: string | undefined = notYet;
  /** The Node that the object was last wanted for. */
  #owner: Node | undefined;

  constructor(nodeName: string, ports: CsiNodePorts) {
    this.#name = nodeName;
    this.#ports = ports;
  }

  /** Why CSI volumes cannot be used yet; `changed` tells when that has become another. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves once the object is there and belongs to this Node, or is wanted for another that took its name. */
  async ensure(node: Node, signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#ports;
    const { factor, longestMs } = ensureWaits;
    this.#owner = node;
    for (let waitMs = ensureWaits.firstMs; this.#owner === node; waitMs = Math.min(waitMs * factor, longestMs)) {
      try {
        await this.#turns.run(() => this.#ensureOnce(node, signal), signal);
        return;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.debug(1, "Cannot create or update the CSINode; will try again", { err: messageOf(error) });
        this.#now(`failed to initialize CSINode: ${messageOf(error)}`);
      }
      await clock.sleep(waitMs * (1 + random() / 10), signal);
    }
  }

  async announce(info: CsiNodeInfo, signal: AbortSignal): Promise<void> {
    await this.#persistently(signal, async () => {
      const node = await this.#node(signal);
      await this.#patchNode(comingDriver(node, info), signal);
      const known = await this.#read(signal);
      await this.#put(known, withDriver(csiNodeFor(node, known), info), signal);
    });
  }

  async withdraw(driver: string, signal: AbortSignal): Promise<void> {
    await this.#persistently(signal, async () => {
      const known = await this.#read(signal);
      if (known !== undefined) await this.#put(known, withoutDriver(known, driver), signal);
      await this.#patchNode(leavingDriver(await this.#node(signal), driver), signal);
    });
  }

  async #ensureOnce(node: Node, signal: AbortSignal): Promise<void> {
    if (this.#owner !== node) return;
    const known = await this.#read(signal);
    await this.#put(known, csiNodeFor(node, known), signal);
    this.#now(undefined);
  }

  #read(signal: AbortSignal): Promise<CSINode | undefined> {
    return getObject(this.#ports.client, resources.csiNodes, { name: this.#name }, "latest", signal);
  }

  /** Writes what is not so already; rejects when somebody else has changed the object since it was read. */
  async #put(known: CSINode | undefined, wanted: CSINode, signal: AbortSignal): Promise<void> {
    const { client } = this.#ports;
    if (known === undefined) await client.create(resources.csiNodes, {}, wanted, signal);
    else if (!jsonEqual(known, wanted)) await client.update(resources.csiNodes, { name: this.#name }, wanted, signal);
  }

  async #node(signal: AbortSignal): Promise<Node> {
    const name = this.#name;
    try {
      return await this.#ports.client.get(resources.nodes, { name }, {}, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new Error(`node "${name}" is not registered yet`, { cause: error });
    }
  }

  async #patchNode(metadata: MetadataChange | undefined, signal: AbortSignal): Promise<void> {
    if (metadata === undefined) return;
    const patch = { type: "merge", body: { metadata } } as const;
    this.#ports.onNode(await this.#ports.client.patch(resources.nodes, { name: this.#name }, patch, signal));
  }

  async #persistently(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { tries, firstMs, factor } = driverTries;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#turns.run(work, signal);
      } catch (error) {
        if (isAbort(error, signal) || error instanceof TopologyCollisionError || attempt === tries) throw error;
        await this.#ports.clock.sleep(firstMs * factor ** (attempt - 1), signal);
      }
    }
  }

  #now(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.changed.tell();
  }
}
