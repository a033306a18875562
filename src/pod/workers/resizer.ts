import { type Clock, unlessAborted, withDeadline } from "../../ground/base/index.ts";
import {
  type Container,
  type ContainerResources,
  duePodResize,
  dueResize,
  type GivenResources,
  type IdentifiedPod,
  newestOf,
  type ObservedContainer,
  type ObservedPod,
  type PodUid,
  type ResizableResource,
  resizableContainers,
  type SandboxId,
  uidOf,
} from "../../ground/model/index.ts";
import type { Actuations, Allocations, PodCgroups } from "../resources/index.ts";
import type { ContainerUpdates } from "../runtime/index.ts";
import type { PendingResize, StatusInput } from "../status/index.ts";
import type { ResizePort } from "./ports.ts";

/** A disk that takes longer hangs. */
const savedMs = 5_000;

export interface ResizerPorts {
  readonly clock: Clock;
  readonly allocations: Pick<Allocations, "saved" | "asRun">;
  readonly actuations: Actuations;
  readonly pending: (uid: PodUid) => PendingResize | undefined;
  /** Accepted, and not said to be done; by the version of the spec. */
  readonly accepted: Map<PodUid, number | undefined>;
  /** Whether statuses say what pods as a whole have: the gate InPlacePodLevelResourcesVerticalScaling. */
  readonly tellsOfPods: boolean;
  readonly cgroups: Pick<PodCgroups, "raise" | "lower" | "follow" | "memoryLimit" | "memoryUsage" | "resources">;
  readonly containers: ContainerUpdates;
  /** The newest sandbox of the pod. */
  readonly sandboxOf: (uid: PodUid) => SandboxId | undefined;
}

/** Everything by which running containers get other resources. */
export class Resizer implements ResizePort {
  readonly #ports: ResizerPorts;

  constructor(ports: ResizerPorts) {
    this.#ports = ports;
  }

  givenTo(uid: PodUid): GivenResources {
    return this.#ports.actuations.givenTo(uid);
  }

  pending(uid: PodUid): PendingResize | undefined {
    return this.#ports.pending(uid);
  }

  accepted(pod: IdentifiedPod): { readonly generation: number | undefined } | undefined {
    const { accepted, allocations } = this.#ports;
    const uid = uidOf(pod);
    // It may still be worked on with what it was promised before, in the same version of its spec.
    if (!accepted.has(uid) || allocations.asRun(pod) !== pod) return undefined;
    return { generation: accepted.get(uid) };
  }

  told(uid: PodUid, generation: number | undefined): void {
    // Another one may have been accepted while the end of this one was being kept.
    if (this.#ports.accepted.get(uid) === generation) this.#ports.accepted.delete(uid);
  }

  async podLevel(pod: IdentifiedPod, isRunning: boolean): Promise<StatusInput["resize"]["podLevel"]> {
    if (!this.#ports.tellsOfPods) return undefined;
    if (!isRunning) return { ofCgroup: undefined };
    // What can't be read is not worth a status that does not come: then what was given is told.
    return { ofCgroup: await this.#ports.cgroups.resources(pod).catch(() => undefined) };
  }

  promiseKept(signal: AbortSignal): Promise<void> {
    const { clock, allocations } = this.#ports;
    const late = (): Error => new Error("what the pod was promised can't be saved: the disk does not answer");
    return withDeadline(clock, savedMs, late, signal, (bounded) => unlessAborted(allocations.saved(), bounded));
  }

  async raisePod(pod: IdentifiedPod, resources: readonly ResizableResource[], signal: AbortSignal): Promise<void> {
    await this.#ports.cgroups.raise(pod, resources);
    await this.#tellSandbox(pod, signal);
  }

  async lowerPod(pod: IdentifiedPod, resources: readonly ResizableResource[], signal: AbortSignal): Promise<void> {
    await this.#ports.cgroups.lower(pod, resources);
    await this.#tellSandbox(pod, signal);
  }

  followPod(pod: IdentifiedPod): Promise<void> {
    return this.#ports.cgroups.follow(pod);
  }

  notePod(uid: PodUid, resources: ContainerResources): void {
    this.#ports.actuations.notePod(uid, resources);
  }

  async update(
    pod: IdentifiedPod,
    running: ObservedContainer,
    container: Container,
    signal: AbortSignal,
  ): Promise<void> {
    const { containers, actuations } = this.#ports;
    try {
      await containers.update(pod, running, container, signal);
    } catch (error) {
      actuations.doubt(pod, running.name, container.resources ?? {});
      throw error;
    }
    actuations.note(pod, running.name, container.resources ?? {});
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

  async #tellSandbox(pod: IdentifiedPod, signal: AbortSignal): Promise<void> {
    const id = this.#ports.sandboxOf(uidOf(pod));
    if (id !== undefined) await this.#ports.containers.tellSandbox(pod, id, signal);
  }
}

/** Whether the pod, and whatever of it may run now, was given what it was promised, as far as anybody has noted it. */
export function hasWhatWasPromised(
  pod: IdentifiedPod,
  observed: ObservedPod | undefined,
  given: GivenResources,
): boolean {
  if (duePodResize(pod, given).changed.length > 0) return false;
  return resizableContainers(pod).every((container) => {
    // What has ended gets its promise when it starts anew, and may never do so.
    const running = observed === undefined ? container : newestOf(observed, container.name);
    if (running === undefined || ("state" in running && running.state === "exited")) return true;
    return dueResize(pod, container, running, given).changed.length === 0;
  });
}
