import { type KubeClients, resources } from "../../connections/kube/index.ts";
import { type Clock, isAbort, type Logger, Pause, type TaskScope, TokenBucket } from "../../ground/base/index.ts";
import type { Node, RecordNodeEvent } from "../../ground/model/index.ts";
import type { CsiNodeKeeper } from "./csi-node/csi-node-keeper.ts";
import { LeaseKeeper } from "./heartbeat/lease.ts";
import { StatusReporter } from "./heartbeat/status-reporter.ts";
import type { OwnNode } from "./own-node.ts";
import type { NodeFacts } from "./ports.ts";
import { newNode } from "./registration/node-object.ts";
import { registerNode } from "./registration/register.ts";
import type { NodeSettings } from "./settings.ts";
import { StatusComputer } from "./status/compute.ts";

export interface NodeKeeperPorts {
  /** The Node that is kept; watched by whoever made it. */
  readonly own: OwnNode;
  readonly csiNode: CsiNodeKeeper;
  readonly clients: Pick<KubeClients, "main" | "heartbeat" | "resetHeartbeat">;
  readonly facts: NodeFacts;
  readonly clock: Clock;
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random: () => number;
  readonly recordEvent: RecordNodeEvent;
  readonly takePodCidrs: (cidrs: readonly string[], signal: AbortSignal) => Promise<boolean>;
  /** The API server answers again after heartbeats had failed. */
  readonly onRecovered: () => void;
}

const statusJitter = 0.04;
/** What changes often may not be reported as often. */
const wokenPerSecond = 0.5;
const wokenBurst = 10;
const storageGraceMs = 1_000;

/**
 * Keeps the Node object: makes it, reports the node's status, renews its lease. A Node that somebody deletes is not made
 * again while the agent runs, as users of `kubectl delete node` expect; one that comes back is taken up.
 */
export class NodeKeeper {
  readonly #settings: NodeSettings;
  readonly #ports: NodeKeeperPorts;
  readonly #computer: StatusComputer;
  readonly #reporter: StatusReporter;
  readonly #lease: LeaseKeeper;
  readonly #pause: Pause;
  readonly #wakes: TokenBucket;
  #before: Node | undefined;
  #woken = false;
  #scope: TaskScope | undefined;

  constructor(settings: NodeSettings, ports: NodeKeeperPorts) {
    const { clients, facts, clock, log, random, recordEvent } = ports;
    this.#settings = settings;
    this.#ports = ports;
    this.#pause = new Pause(clock);
    this.#wakes = new TokenBucket(wokenPerSecond, wokenBurst, clock);
    ports.csiNode.changed.on(() => this.wake());
    const storageProblem = (): string | undefined => ports.csiNode.problem;
    this.#computer = new StatusComputer(settings, { facts, clock, log, recordEvent, storageProblem });
    const vital = { client: clients.heartbeat, resetConnection: () => clients.resetHeartbeat(), clock, log, random };
    this.#reporter = new StatusReporter(settings, {
      ...vital,
      known: () => ports.own.node,
      compute: (node, signal) => this.#computer.compute(node, signal),
      takePodCidrs: ports.takePodCidrs,
      onReported: (node) => ports.own.answered(node),
    });
    this.#lease = new LeaseKeeper(settings, {
      ...vital,
      node: async () => ports.own.node,
      onRecovered: () => this.#recovered(),
    });
  }

  /** How the lease is doing. */
  get lease(): Pick<LeaseKeeper, "renewal"> {
    return this.#lease;
  }

  /** A fact has changed: look now whether the status has. */
  wake(): void {
    this.#woken = true;
    this.#pause.cutShort();
  }

  /** Starts the loops; they live in the scope. */
  start(scope: TaskScope): void {
    this.#scope = scope;
    this.#ports.recordEvent({ type: "Normal", reason: "Starting", message: "Starting kubelet." });
    this.#ports.own.onNode((node) => this.#changed(node));
    // It may have been seen before there was anybody to keep it.
    if (this.#ports.own.node !== undefined) this.#changed(this.#ports.own.node);
    scope.spawn("node status", (signal) => this.#reportStatus(signal));
    scope.spawn("node lease", (signal) => this.#lease.run(signal));
  }

  async #reportStatus(signal: AbortSignal): Promise<void> {
    const { clients, clock, log, facts, random, own } = this.#ports;
    if (this.#settings.register) {
      const { cloud, machine } = facts;
      await cloud?.firstAnswer(signal);
      const wanted = (bounded: AbortSignal): Promise<Node> =>
        this.#computer.compute(newNode(this.#settings, machine.architecture, cloud?.instance), bounded);
      own.answered(await registerNode({ client: clients.main, clock, log, wanted, devices: facts.devices }, signal));
      await this.#storageSettles(signal);
    }
    while (!signal.aborted) {
      this.#woken = false;
      if (own.node !== undefined || !own.hasSynced) await this.#reporter.sync(signal);
      await this.#giveProviderId(signal);
      const periodMs = this.#settings.updateEveryMs * (1 + random() * statusJitter);
      if (!this.#woken) await this.#pause.wait(periodMs, signal);
      if (this.#woken) await this.#wakes.take(signal);
    }
  }

  /** A cloud that was out of reach while the node registered may answer later; an id that is there never changes. */
  async #giveProviderId(signal: AbortSignal): Promise<void> {
    const { facts, own, clients, log } = this.#ports;
    const providerID = facts.cloud?.instance?.providerId ?? "";
    const { node } = own;
    if (providerID === "" || node === undefined || (node.spec?.providerID ?? "") !== "") return;
    const patch = { type: "strategic", body: { spec: { providerID } } } as const;
    try {
      own.answered(await clients.main.patch(resources.nodes, { name: this.#settings.nodeName }, patch, signal));
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.error("The Node can't be given its provider id; it is tried with the next report", error);
    }
  }

  /** A node that is only about to get its CSINode need not be called unready for that moment. */
  async #storageSettles(signal: AbortSignal): Promise<void> {
    const { problem } = this.#ports.csiNode;
    this.#woken = false;
    if (problem !== undefined && !this.#woken) await this.#pause.wait(storageGraceMs, signal);
  }

  #changed(next: Node | undefined): void {
    const before = this.#before;
    this.#before = next;
    if (before !== undefined && next === undefined) {
      this.#ports.log.warn("The Node was deleted; it will not be created again until the agent restarts");
    }
    if (next !== undefined && next.metadata?.uid !== before?.metadata?.uid) this.#takeUp(next);
    if (before?.spec?.unschedulable !== next?.spec?.unschedulable) this.wake();
  }

  /** What belongs to the Node must belong to this one. */
  #takeUp(node: Node): void {
    this.#reporter.reset();
    this.#scope?.spawn("CSINode", (signal) => this.#ports.csiNode.ensure(node, signal));
    this.#lease.hasten();
    this.wake();
  }

  #recovered(): void {
    this.#ports.own.hasten();
    this.wake();
    this.#ports.onRecovered();
  }
}
