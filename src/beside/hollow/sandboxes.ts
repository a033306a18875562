import {
  ContainerEventType,
  CriError,
  type PodSandboxFilter,
  type RunPodSandboxRequest,
} from "../../connections/cri/index.ts";
import { type CallContext, findById, type Ids, Names, type Stamps } from "./context.ts";
import { IpPool } from "./ip-pool.ts";
import { sandboxStates, usesNodeNetwork } from "./messages.ts";
import type { SandboxRecord } from "./records.ts";

export interface SandboxPorts {
  readonly ids: Ids;
  readonly stamps: Stamps;
  readonly podCidr: string;
  /** undefined: every handler is known. */
  readonly handlers: readonly string[] | undefined;
  /** What keeps the network from being set up; undefined when nothing does. */
  networkProblem(): string | undefined;
  /** Lets faults strike after the name is taken and before the sandbox is there. */
  interlude(podUid: string, context: CallContext): Promise<void>;
  announce(type: ContainerEventType, id: string, sandbox: SandboxRecord): void;
}

/** Pod sandboxes: names, networks, states. Containers are dealt with elsewhere. */
export class Sandboxes {
  readonly #ports: SandboxPorts;
  readonly #names = new Names("sandbox");
  readonly #records = new Map<string, SandboxRecord>();
  #ips: IpPool;

  constructor(ports: SandboxPorts) {
    this.#ports = ports;
    this.#ips = new IpPool(ports.podCidr);
  }

  all(): SandboxRecord[] {
    return [...this.#records.values()];
  }

  find(id: string, operation: string, what: string): SandboxRecord | undefined {
    return findById(this.#records, id, operation, what);
  }

  list(filter: PodSandboxFilter | undefined): SandboxRecord[] {
    return this.all().filter(({ id, state, config }) => {
      if (filter === undefined) return true;
      if (!id.startsWith(filter.id)) return false;
      if (filter.state !== undefined && filter.state.state !== sandboxStates[state]) return false;
      return Object.entries(filter.labelSelector).every(([key, value]) => config.labels[key] === value);
    });
  }

  async run({ config, runtimeHandler }: RunPodSandboxRequest, context: CallContext): Promise<SandboxRecord> {
    const { ids, stamps, handlers, interlude, announce } = this.#ports;
    const refuse = (problem: string): CriError => new CriError("Unknown", "runPodSandbox", problem);
    if (config?.metadata === undefined) throw refuse("sandbox config must include metadata");
    const { name, namespace, uid, attempt } = config.metadata;
    const id = ids.next();
    const reserved = `${name}_${namespace}_${uid}_${attempt}`;
    this.#names.reserve("runPodSandbox", reserved, id);
    const createdAt = stamps.next();
    const sandbox: SandboxRecord = { id, config, runtimeHandler, createdAt, state: "ready", ip: undefined };
    try {
      if (runtimeHandler !== "" && handlers !== undefined && !handlers.includes(runtimeHandler)) {
        throw refuse(`failed to get sandbox runtime: no runtime for "${runtimeHandler}" is configured`);
      }
      await interlude(uid, context);
      context.caller.throwIfAborted();
      if (!usesNodeNetwork(sandbox)) sandbox.ip = this.#setUpNetwork(id);
    } catch (error) {
      this.#names.release(reserved);
      throw error;
    }
    this.#records.set(id, sandbox);
    announce(ContainerEventType.CONTAINER_CREATED_EVENT, id, sandbox);
    announce(ContainerEventType.CONTAINER_STARTED_EVENT, id, sandbox);
    return sandbox;
  }

  /** The sandbox's own process dies, as when somebody kills it; its network stays until it is stopped. */
  die(sandbox: SandboxRecord): void {
    if (sandbox.state === "notReady") return;
    sandbox.state = "notReady";
    this.#ports.announce(ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox.id, sandbox);
  }

  stop(sandbox: SandboxRecord): void {
    if (sandbox.ip !== undefined) this.#ips.release(sandbox.ip);
    sandbox.ip = undefined;
    this.die(sandbox);
  }

  remove(sandbox: SandboxRecord): void {
    this.stop(sandbox);
    const { name, namespace, uid, attempt } = sandbox.config.metadata ?? {};
    this.#names.release(`${name}_${namespace}_${uid}_${attempt}`);
    this.#records.delete(sandbox.id);
    this.#ports.announce(ContainerEventType.CONTAINER_DELETED_EVENT, sandbox.id, sandbox);
  }

  clear(): void {
    this.#records.clear();
    this.#names.clear();
    this.#ips = new IpPool(this.#ports.podCidr);
  }

  #setUpNetwork(id: string): string {
    const problem = this.#ports.networkProblem();
    const ip = problem === undefined ? this.#ips.take() : undefined;
    if (ip !== undefined) return ip;
    const why =
      problem ??
      `plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in ${this.#ports.podCidr}`;
    throw new CriError("Unknown", "runPodSandbox", `failed to setup network for sandbox "${id}": ${why}`);
  }
}
