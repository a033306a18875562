import { isConflict, isNotFound, type KubeClient, resources } from "../../../connections/kube/index.ts";
import { type Clock, isAbort, type Logger, messageOf, Pause } from "../../../ground/base/index.ts";
import type { Lease, Node } from "../../../ground/model/index.ts";

export interface LeasePorts {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  /** For when attempts fail again and again: the connection may be the cause. */
  readonly resetConnection: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** The Node that the lease belongs to; undefined while there is none. */
  readonly node: (signal: AbortSignal) => Promise<Node | undefined>;
  /** A heartbeat went through after others had not. */
  readonly onRecovered: () => void;
}

const namespace = "kube-node-lease";
const mostTries = 5;
const firstWaitMs = 200;
const longestWaitMs = 7_000;
const jitter = 0.04;

/** Renews the node's lease, by which the cluster knows that the node is alive. */
export class LeaseKeeper {
  readonly #ports: LeasePorts;
  readonly #nodeName: string;
  readonly #seconds: number;
  readonly #pause: Pause;
  #lease: Lease | undefined;
  /** Why it could not be renewed; undefined when the last try went through. */
  #problem: string | undefined;
  #renewedAt: number | undefined;
  #hastened = false;

  constructor(settings: { readonly nodeName: string; readonly leaseSeconds: number }, ports: LeasePorts) {
    this.#nodeName = settings.nodeName;
    this.#seconds = settings.leaseSeconds;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** Renew now: there is a Node to own the lease, or another than before. */
  hasten(): void {
    this.#hastened = true;
    this.#pause.cutShort();
  }

  /** When it last was, on the clock's monotonic scale, and why it could not be since. */
  get renewal(): { readonly at: number | undefined; readonly problem: string | undefined } {
    return { at: this.#renewedAt, problem: this.#problem };
  }

  async run(signal: AbortSignal): Promise<void> {
    const periodMs = this.#seconds * 250;
    while (!signal.aborted) {
      this.#hastened = false;
      await this.#beat(signal);
      if (this.#hastened) continue;
      await this.#pause.wait(periodMs * (1 + this.#ports.random() * jitter), signal);
    }
  }

  async #beat(signal: AbortSignal): Promise<void> {
    if (this.#lease !== undefined && (await this.#renew(this.#lease, signal))) return;
    const { lease, isNew } = await this.#ensure(signal);
    this.#lease = lease;
    if (lease !== undefined && !isNew) await this.#renew(lease, signal);
  }

  /** Writes what is known without reading first; true when that went through. */
  async #renew(known: Lease, signal: AbortSignal): Promise<boolean> {
    const { client, log, resetConnection } = this.#ports;
    let base = known;
    for (let tries = 1; tries <= mostTries; tries++) {
      try {
        const lease = await this.#renewed(base, signal);
        this.#lease = await client.update(resources.leases, this.#ref, lease, signal);
        this.#succeeded();
        return true;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        this.#failed(error);
        log.error("Failed to update lease", error, { tries });
        if (isNotFound(error)) return false;
        if (isConflict(error)) {
          // The server also speaks of a conflict when the lease is gone.
          const present = await this.#read(signal);
          if (present === "gone") return false;
          base = present ?? base;
          continue;
        }
        if (tries >= 2) resetConnection();
      }
    }
    return false;
  }

  /** Finds or makes the lease, however long that takes; undefined when there is no Node to own it. */
  async #ensure(signal: AbortSignal): Promise<{ lease: Lease | undefined; isNew: boolean }> {
    const { client, clock, log } = this.#ports;
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
      try {
        const existing = await this.#get(signal);
        if (existing !== undefined) return { lease: existing, isNew: false };
        const fresh = await this.#renewed(undefined, signal);
        if (fresh.metadata?.ownerReferences === undefined) return { lease: undefined, isNew: false };
        const lease = await client.create(resources.leases, { namespace }, fresh, signal);
        this.#succeeded();
        return { lease, isNew: true };
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        this.#failed(error);
        log.error("Failed to ensure lease exists, will retry", error, { intervalMs: waitMs });
      }
      await clock.sleep(waitMs, signal);
    }
  }

  async #get(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#ports.client.get(resources.leases, this.#ref, {}, signal);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Undefined when that cannot be said now. */
  async #read(signal: AbortSignal): Promise<Lease | "gone" | undefined> {
    try {
      return (await this.#get(signal)) ?? "gone";
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.debug(1, "Cannot read the lease", { err: messageOf(error) });
      return undefined;
    }
  }

  async #renewed(base: Lease | undefined, signal: AbortSignal): Promise<Lease> {
    const { clock, node } = this.#ports;
    const owner = await node(signal);
    const { name = this.#nodeName, uid } = owner?.metadata ?? {};
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      ...base,
      metadata: {
        ...base?.metadata,
        name: this.#nodeName,
        namespace,
        // An owner that is gone would take the lease with it.
        ...(uid !== undefined && { ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }] }),
      },
      spec: {
        ...base?.spec,
        holderIdentity: this.#nodeName,
        leaseDurationSeconds: this.#seconds,
        renewTime: microTime(clock.now()),
      },
    };
  }

  #failed(error: unknown): void {
    this.#problem = messageOf(error);
  }

  #succeeded(): void {
    if (this.#problem !== undefined) this.#ports.onRecovered();
    this.#problem = undefined;
    this.#renewedAt = this.#ports.clock.monotonic();
  }

  get #ref(): { namespace: string; name: string } {
    return { namespace, name: this.#nodeName };
  }
}

/** Times of this kind have six digits after the point. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
