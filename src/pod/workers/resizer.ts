import {
  type Container,
  type ContainerResources,
  changedResources,
  type IdentifiedPod,
  type ObservedContainer,
  type PodUid,
  type ResizableResource,
  resizableContainers,
  type SandboxId,
  uidOf,
} from "../../ground/model/index.ts";
import type { Actuations, Allocations, PodCgroups } from "../resources/index.ts";
import type { ContainerUpdates } from "../runtime/index.ts";
import type { PendingResize } from "../status/index.ts";
import type { ResizePort } from "./ports.ts";

export interface ResizerPorts {
  readonly allocations: Pick<Allocations, "saved">;
  readonly actuations: Actuations;
  readonly pending: (uid: PodUid) => PendingResize | undefined;
  readonly cgroups: Pick<PodCgroups, "raise" | "lower" | "follow" | "memoryLimit" | "memoryUsage">;
  readonly containers: ContainerUpdates;
  /** The newest sandbox of the pod. */
  readonly sandboxOf: (uid: PodUid) => SandboxId | undefined;
  readonly signal: AbortSignal;
}

/** Everything by which running containers get other resources. */
export class Resizer implements ResizePort {
  readonly #ports: ResizerPorts;

  constructor(ports: ResizerPorts) {
    this.#ports = ports;
  }

  givenTo(uid: PodUid, { name }: ObservedContainer): ContainerResources | undefined {
    return this.#ports.actuations.of(uid, name);
  }

  pending(uid: PodUid): PendingResize | undefined {
    return this.#ports.pending(uid);
  }

  promiseKept(): Promise<void> {
    return this.#ports.allocations.saved();
  }

  async raisePod(pod: IdentifiedPod, resource: ResizableResource): Promise<void> {
    await this.#ports.cgroups.raise(pod, resource);
    await this.#tellSandbox(pod);
  }

  async lowerPod(pod: IdentifiedPod, resource: ResizableResource): Promise<void> {
    await this.#ports.cgroups.lower(pod, resource);
    await this.#tellSandbox(pod);
  }

  followPod(pod: IdentifiedPod): Promise<void> {
    return this.#ports.cgroups.follow(pod);
  }

  async update(
    pod: IdentifiedPod,
    running: ObservedContainer,
    container: Container,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#ports.containers.update(pod, running, container, signal);
    this.#ports.actuations.note(uidOf(pod), running.name, container.resources ?? {});
  }

  podMemoryLimit(pod: IdentifiedPod): bigint | undefined {
    return this.#ports.cgroups.memoryLimit(pod);
  }

  podMemoryUsage(pod: IdentifiedPod): Promise<bigint> {
    return this.#ports.cgroups.memoryUsage(pod);
  }

  containerMemoryUsage(running: ObservedContainer, signal: AbortSignal): Promise<bigint> {
    return this.#ports.containers.memoryUsage(running, signal);
  }

  async #tellSandbox(pod: IdentifiedPod): Promise<void> {
    const id = this.#ports.sandboxOf(uidOf(pod));
    if (id !== undefined) await this.#ports.containers.tellSandbox(pod, id, this.#ports.signal);
  }
}

/** Whether every container of the pod was given what it was promised, as far as anybody has noted it. */
export function hasWhatWasPromised(pod: IdentifiedPod, actuations: Pick<Actuations, "of">): boolean {
  return resizableContainers(pod).every(({ name, resources }) => {
    const given = actuations.of(uidOf(pod), name);
    return given === undefined || changedResources(given, resources).length === 0;
  });
}
