import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ContainerConfig,
  ContainerEventType,
  type ContainerFilter,
  type CreateContainerRequest,
  CriError,
  LinuxContainerResources,
  NamespaceMode,
} from "../../connections/cri/index.ts";
import { type Clock, LinkedSignal } from "../../ground/base/index.ts";
import type { Behaviour, OnTerm, SimulatedUsage } from "./behaviour.ts";
import { type CallContext, findById, type Ids, Names, type Stamps } from "./context.ts";
import { FakeProcess } from "./fake-process.ts";
import type { StoredImage } from "./image-store.ts";
import { LogFile } from "./log-file.ts";
import { containerStates } from "./messages.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";

export interface ContainerPorts {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly stamps: Stamps;
  readonly logs: "files" | "none";
  imageOf(name: string): StoredImage | undefined;
  behaviourOf(config: ContainerConfig, sandbox: SandboxRecord): Behaviour;
  /** Lets faults strike after the name is taken and before the container is there. */
  interlude(podUid: string, context: CallContext): Promise<void>;
  announce(type: ContainerEventType, id: string, sandbox: SandboxRecord): void;
}

const defaultUsage: SimulatedUsage = { cpuMillicores: 1, memoryBytes: 4 * 1024 * 1024 };
const lostExit = { exitCode: 255, reason: "Unknown" };

/** Containers and the processes that pretend to run in them. */
export class Containers {
  readonly #ports: ContainerPorts;
  readonly #names = new Names("container");
  readonly #records = new Map<string, ContainerRecord>();

  constructor(ports: ContainerPorts) {
    this.#ports = ports;
  }

  all(): ContainerRecord[] {
    return [...this.#records.values()];
  }

  of(sandbox: SandboxRecord): ContainerRecord[] {
    return this.all().filter((container) => container.sandbox === sandbox);
  }

  find(id: string, operation: string, what: string): ContainerRecord | undefined {
    return findById(this.#records, id, operation, what);
  }

  list(filter: ContainerFilter | undefined): ContainerRecord[] {
    return this.all().filter(({ id, sandbox, life, config }) => {
      if (filter === undefined) return true;
      if (!id.startsWith(filter.id) || !sandbox.id.startsWith(filter.podSandboxId)) return false;
      if (filter.state !== undefined && filter.state.state !== containerStates[life.step]) return false;
      return Object.entries(filter.labelSelector).every(([key, value]) => config.labels[key] === value);
    });
  }

  async create(
    { config }: CreateContainerRequest,
    sandbox: SandboxRecord,
    context: CallContext,
  ): Promise<ContainerRecord> {
    const { ids, stamps, imageOf, interlude, announce } = this.#ports;
    if (config?.metadata === undefined) {
      throw new CriError("Unknown", "createContainer", "container config must include metadata");
    }
    const id = ids.next();
    const reserved = nameOf(config, sandbox);
    this.#names.reserve("createContainer", reserved, id);
    try {
      const imageName = config.image?.image ?? "";
      const image = imageOf(imageName);
      if (image === undefined) {
        throw new CriError("NotFound", "createContainer", `failed to resolve image "${imageName}": not found`);
      }
      await interlude(sandbox.config.metadata?.uid ?? "", context);
      context.caller.throwIfAborted();
      const logPath = config.logPath === "" ? "" : join(sandbox.config.logDirectory, config.logPath);
      const container: ContainerRecord = {
        id,
        sandbox,
        config,
        image,
        createdAt: stamps.next(),
        log: new LogFile(this.#ports.logs === "files" ? logPath : "", stamps.next),
        logPath,
        resources: config.linux?.resources,
        life: { step: "created" },
        exited: new Set(),
      };
      this.#records.set(id, container);
      announce(ContainerEventType.CONTAINER_CREATED_EVENT, id, sandbox);
      return container;
    } catch (error) {
      this.#names.release(reserved);
      throw error;
    }
  }

  start(container: ContainerRecord): void {
    const { id, sandbox, config, life } = container;
    const refuse = (problem: string): CriError => new CriError("Unknown", "startContainer", problem);
    if (life.step !== "created") {
      const state = `CONTAINER_${life.step.toUpperCase()}`;
      throw refuse(`failed to set starting state for container "${id}": container is in ${state} state`);
    }
    if (sandbox.state !== "ready") throw refuse(`sandbox container "${sandbox.id}" is not running`);
    const behaviour = this.#ports.behaviourOf(config, sandbox);
    const startedAt = this.#ports.stamps.next();
    if (behaviour.type === "failsToStart") {
      const { message } = behaviour;
      this.#exit(container, { startedAt: 0n, exitCode: 128, reason: "StartError", message });
      throw refuse(message);
    }
    const process = new FakeProcess(behaviour.steps, resolveTerm(behaviour.onTerm, config), {
      clock: this.#ports.clock,
      print: (stream, text) => container.log.print(stream, text),
      write: (path, text, mode) => writeThroughMounts(config, path, text, mode),
      exited: (exitCode, reason) => {
        this.#exit(container, { startedAt, exitCode, reason: reason ?? (exitCode === 0 ? "Completed" : "Error") });
      },
    });
    container.log.open();
    container.life = { step: "running", startedAt, process, usage: behaviour.usage ?? defaultUsage };
    this.#ports.announce(ContainerEventType.CONTAINER_STARTED_EVENT, id, sandbox);
    process.start();
  }

  /** SIGTERM, and SIGKILL when the grace has passed. Giving up waiting leaves the rest of it undone. */
  async stop(container: ContainerRecord, graceSeconds: bigint, { caller }: CallContext): Promise<void> {
    if (container.life.step !== "running") return;
    const { process } = container.life;
    if (graceSeconds > 0n) {
      process.terminate();
      if (await this.#exitsWithin(container, Number(graceSeconds) * 1000, caller)) return;
    }
    process.kill();
  }

  remove(container: ContainerRecord): void {
    if (container.life.step === "running") container.life.process.kill();
    this.#names.release(nameOf(container.config, container.sandbox));
    this.#records.delete(container.id);
    this.#ports.announce(ContainerEventType.CONTAINER_DELETED_EVENT, container.id, container.sandbox);
  }

  /** Zero and empty fields leave what is there. */
  updateResources(container: ContainerRecord, update: LinuxContainerResources | undefined): void {
    const given = Object.entries(update ?? {}).filter(([, value]) => value !== 0n && value !== "" && !isEmpty(value));
    container.resources = LinuxContainerResources.fromPartial({ ...container.resources, ...Object.fromEntries(given) });
  }

  /** Every process is gone and nobody saw how it ended, as after a reboot. */
  loseProcesses(): void {
    for (const container of this.#records.values()) {
      if (container.life.step === "running") container.life.process.exit(lostExit.exitCode, lostExit.reason);
    }
  }

  clear(): void {
    this.loseProcesses();
    this.#records.clear();
    this.#names.clear();
  }

  #exit(container: ContainerRecord, end: Ended): void {
    container.log.close();
    container.life = { step: "exited", message: "", ...end, finishedAt: this.#ports.stamps.next() };
    for (const tell of container.exited) tell();
    container.exited.clear();
    this.#ports.announce(ContainerEventType.CONTAINER_STOPPED_EVENT, container.id, container.sandbox);
  }

  async #exitsWithin(container: ContainerRecord, ms: number, signal: AbortSignal): Promise<boolean> {
    if (container.life.step === "exited") return true;
    using waiting = new LinkedSignal(signal);
    const onExit = (): void => waiting.abort(exitSeen);
    container.exited.add(onExit);
    try {
      signal.throwIfAborted();
      await this.#ports.clock.sleep(ms, waiting.signal);
      return false;
    } catch (error) {
      if (error === exitSeen) return true;
      throw error;
    } finally {
      container.exited.delete(onExit);
    }
  }
}

const exitSeen = new Error("the container exited");

interface Ended {
  readonly startedAt: bigint;
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string;
}

function nameOf({ metadata }: ContainerConfig, { config }: SandboxRecord): string {
  const { name, namespace, uid } = config.metadata ?? {};
  return `${metadata?.name}_${name}_${namespace}_${uid}_${metadata?.attempt}`;
}

function resolveTerm(onTerm: OnTerm, { linux }: ContainerConfig): Exclude<OnTerm, "unhandled"> {
  if (onTerm !== "unhandled") return onTerm;
  return linux?.securityContext?.namespaceOptions?.pid === NamespaceMode.CONTAINER ? "ignore" : "die";
}

function writeThroughMounts({ mounts }: ContainerConfig, path: string, text: string, mode: "replace" | "append"): void {
  const mount = mounts.find(({ containerPath }) => path === containerPath || path.startsWith(`${containerPath}/`));
  if (mount === undefined || mount.readonly) return;
  const hostPath = join(mount.hostPath, path.slice(mount.containerPath.length));
  if (mode === "append") appendFileSync(hostPath, text);
  else writeFileSync(hostPath, text);
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
