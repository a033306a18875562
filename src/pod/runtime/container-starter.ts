import { mkdir } from "node:fs/promises";
import { CriError, type PodSandboxConfig, type RuntimeService } from "../../connections/cri/index.ts";
import { aFewAtOnce, type Clock, type Logger, lingering, messageOf } from "../../ground/base/index.ts";
import {
  type Container,
  type ContainerId,
  type ContainerKind,
  type ContainerResources,
  containerNamed,
  type EventReason,
  fieldPathOf,
  type IdentifiedPod,
  newestOf,
  type ObservedContainer,
  type ObservedPod,
  type PodLedger,
  type PodUid,
  type RecordNodeEvent,
  type RecordPodEvent,
  type SandboxId,
  type StartReason,
  uidOf,
} from "../../ground/model/index.ts";
import type { LeftLogs } from "./container-removal.ts";
import {
  type ContainerContext,
  type ContainerImage,
  containerConfig,
  containerLogDirectory,
  linkLegacyLog,
  type SandboxContext,
  sandboxConfig,
} from "./mapping/index.ts";
import { nextRestartCount } from "./restart-count.ts";
import { StartError } from "./start-error.ts";

/** A runtime call that makes something is given this long to end when its pod is given up: half-made things linger. */
const patienceMs = 2_000;
/** What is noted is on the disk long before. */
const notedMs = 2_000;

/** Makes sandboxes and containers, and tells users how it went. */
export class ContainerStarter {
  readonly #ports: StarterPorts;

  constructor(ports: StarterPorts) {
    this.#ports = ports;
  }

  /** Makes the sandbox; images of the containers that will start in it first are fetched meanwhile. */
  async createSandbox(
    pod: IdentifiedPod,
    attempt: number,
    starting: readonly string[],
    signal: AbortSignal,
  ): Promise<SandboxId> {
    const { ledger, recordEvent, runtime, clock } = this.#ports;
    const span = ledger.begin(uidOf(pod), "sandbox");
    try {
      const context = await this.#ports.sandboxContext(pod);
      const { config, notices } = await sandboxConfig(pod, attempt, context);
      for (const { about, event } of notices) {
        if (about === "pod") recordEvent(pod, event);
        else this.#ports.recordNodeEvent(event);
      }
      for (const name of starting.slice(0, aFewAtOnce)) {
        const entry = containerNamed(pod, name);
        if (entry !== undefined) this.#ports.prefetchImage(pod, entry.kind, entry.container, config, signal);
      }
      await mkdir(config.logDirectory, { recursive: true, mode: 0o755 });
      const runtimeHandler = context.runtimeHandler.name;
      const { podSandboxId } = await this.#measured(pod, runtimeHandler, () =>
        span.within(() =>
          lingering(clock, patienceMs, signal, (late) =>
            runtime.runPodSandbox({ config, runtimeHandler }, { signal: late }),
          ),
        ),
      );
      const id = podSandboxId as SandboxId;
      this.#ports.noteOwner(id, uidOf(pod));
      span.end();
      return id;
    } catch (error) {
      span.fail(messageOf(error));
      if (signal.aborted) throw error;
      const message = rpcTextOf(error);
      recordEvent(pod, {
        type: "Warning",
        reason: "FailedCreatePodSandBox",
        message: `Failed to create pod sandbox: ${message}`,
      });
      throw new StartError("CreatePodSandboxError", message, { cause: error });
    }
  }

  async startContainer(request: StartContainerRequest, signal: AbortSignal): Promise<void> {
    const { onStart } = this.#ports;
    try {
      await this.#startContainer(request, signal);
      onStart?.({ what: "container", kind: request.kind, failure: undefined });
    } catch (error) {
      if (error instanceof StartError) onStart?.({ what: "container", kind: request.kind, failure: error.reason });
      throw error;
    }
  }

  async #measured<Result>(pod: IdentifiedPod, runtimeHandler: string, run: () => Promise<Result>): Promise<Result> {
    const { clock, onStart } = this.#ports;
    const startedAt = clock.monotonic();
    let failed = true;
    try {
      const result = await run();
      failed = false;
      return result;
    } finally {
      onStart?.({ what: "sandbox", pod, runtimeHandler, durationMs: clock.monotonic() - startedAt, failed });
    }
  }

  async #startContainer(request: StartContainerRequest, signal: AbortSignal): Promise<void> {
    const { pod, container, observed } = request;
    const newest = newestOf(observed, container.name);
    const made =
      newest?.state === "created"
        ? await this.#takeUp(request, newest, signal)
        : await this.#create(request, await this.#restartsOf(request, newest), signal);
    await this.#start(request, made, signal);
    await linkLegacyLog({ pod, name: container.name, ...made }, this.#ports.legacyLogs);
    await this.#postStart(request, made.id, signal);
  }

  /** Deletes a dead container, and its logs unless they are kept. */
  async removeContainer(container: ObservedContainer, signal: AbortSignal, logs: LeftLogs = "remove"): Promise<void> {
    await this.#ports.removeContainer(container, signal, logs);
  }

  /**
   * An agent that died between making and starting a container left one that is as good as new, unless it is to have
   * other resources since: what it was told of them when it was made (its environment, for one) is wrong then.
   */
  async #takeUp(request: StartContainerRequest, left: ObservedContainer, signal: AbortSignal): Promise<MadeContainer> {
    const { container, sandboxId } = request;
    const { restartCount, hash } = left.annotations;
    if (left.sandboxId !== sandboxId || hash !== this.#ports.hashOf(container)) {
      return await this.#create(request, await this.#restartsOf(request, left), signal);
    }
    const isUsable = !left.startCutOff && this.#ports.hasItsResources(request.pod, container);
    if (isUsable) return { id: left.id, restartCount };
    // Before anything is noted of its successor, which takes its place: nothing of it ran, so that this is no restart.
    try {
      await this.#ports.removeContainer(left, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      // Its start may be under way, asked for by an agent that is gone: then it is waited for. One that was given up
      // stays in the way of no other.
      if (!left.startCutOff) throw new StartError("RunContainerError", messageOf(error), { cause: error });
      return await this.#create(request, await this.#restartsOf(request, left), signal);
    }
    return await this.#create(request, Math.max(restartCount, request.toldRestarts), signal);
  }

  async #restartsOf(request: StartContainerRequest, newest: ObservedContainer | undefined): Promise<number> {
    const { pod, container, toldRestarts } = request;
    const logDirectory = containerLogDirectory(this.#ports.legacyLogs, pod, container.name);
    return await nextRestartCount(newest, logDirectory, toldRestarts);
  }

  async #create(request: StartContainerRequest, restartCount: number, signal: AbortSignal): Promise<MadeContainer> {
    const { pod, kind, container, observed, sandboxId, sandboxAttempt } = request;
    const { runtime, clock, ledger } = this.#ports;
    // The container that had the name before is dead, so that the note can be true of none but the one that is made now.
    const noted = this.#ports.noteResources(pod, container.name, container.resources ?? {});
    const sandbox = await sandboxConfig(pod, sandboxAttempt, await this.#ports.sandboxContext(pod));
    const image = await this.#ports.ensureImage(pod, kind, container, sandbox.config, signal);
    const span = ledger.begin(uidOf(pod), "create", container.name);
    try {
      const context = await span.within(() =>
        this.#ports.containerContext({ pod, container, observed, image }, signal),
      );
      const config = await containerConfig(pod, container, { ...context, restartCount }, signal);
      await this.#soon(noted);
      const made = { podSandboxId: sandboxId, config, sandboxConfig: sandbox.config };
      const { containerId } = await span.within(() =>
        lingering(clock, patienceMs, signal, (late) => runtime.createContainer(made, { signal: late })),
      );
      this.#ports.noteOwner(containerId as ContainerId, uidOf(pod));
      this.#ports.notePlace({ id: containerId as ContainerId, name: container.name, pod }, context.placement.cpus);
      span.end();
      this.#event(request, "Normal", "Created", `Created container: ${container.name}`);
      return { id: containerId as ContainerId, restartCount };
    } catch (error) {
      span.fail(messageOf(error));
      if (signal.aborted) throw error;
      const reason = error instanceof CriError ? "CreateContainerError" : "CreateContainerConfigError";
      throw this.#failed(request, reason, `Error: ${messageOf(error)}`, messageOf(error), error);
    }
  }

  /** A disk that hangs must not keep containers from starting. */
  async #soon(noted: Promise<void>): Promise<void> {
    const isOver = new AbortController();
    const late = this.#ports.clock.sleep(notedMs, isOver.signal).catch(() => undefined);
    await Promise.race([noted, late]);
    isOver.abort();
  }

  async #start(request: StartContainerRequest, { id }: MadeContainer, signal: AbortSignal): Promise<void> {
    const { pod, container } = request;
    const span = this.#ports.ledger.begin(uidOf(pod), "start", container.name);
    try {
      await span.within(() =>
        lingering(this.#ports.clock, patienceMs, signal, (late) =>
          this.#ports.runtime.startContainer({ containerId: id }, { signal: late }),
        ),
      );
      span.end();
    } catch (error) {
      span.fail(messageOf(error));
      if (signal.aborted) throw error;
      const message = messageOf(error).replaceAll(id, container.name);
      // An agent that is gone had asked for it, too; what has become of that shows in a moment.
      if (isUnderWay.test(message)) throw new StartError("RunContainerError", message, { cause: error });
      throw this.#failed(request, "RunContainerError", `Error: ${message}`, messageOf(error), error);
    }
    this.#event(request, "Normal", "Started", `Started container ${container.name}`);
  }

  async #postStart(request: StartContainerRequest, id: ContainerId, signal: AbortSignal): Promise<void> {
    const { pod, container } = request;
    if (container.lifecycle?.postStart === undefined) return;
    const failure = await this.#ports.runPostStart(pod, container, id, signal);
    if (failure === undefined) return;
    await this.#ports.killAfterFailedHook(pod, id, signal);
    throw new StartError("PostStartHookError", failure);
  }

  #failed(
    request: StartContainerRequest,
    reason: StartReason,
    event: string,
    message: string,
    cause: unknown,
  ): StartError {
    this.#event(request, "Warning", "Failed", event);
    return new StartError(reason, message, { cause });
  }

  #event(
    { pod, kind, container }: StartContainerRequest,
    type: "Normal" | "Warning",
    reason: EventReason,
    message: string,
  ): void {
    this.#ports.recordEvent(pod, { type, reason, message, fieldPath: fieldPathOf(kind, container.name) });
  }
}

export interface StartContainerRequest {
  readonly pod: IdentifiedPod;
  readonly kind: ContainerKind;
  readonly container: Container;
  readonly observed: ObservedPod;
  readonly sandboxId: SandboxId;
  readonly sandboxAttempt: number;
  /** Restarts that the pod's status has told of before this one. */
  readonly toldRestarts: number;
}

/** How a start went, for metrics. */
export type StartReport =
  | {
      readonly what: "sandbox";
      readonly pod: IdentifiedPod;
      readonly runtimeHandler: string;
      readonly durationMs: number;
      readonly failed: boolean;
    }
  /** `failure` is the reason that users see. */
  | { readonly what: "container"; readonly kind: ContainerKind; readonly failure: string | undefined };

interface MadeContainer {
  readonly id: ContainerId;
  readonly restartCount: number;
}

export interface StarterPorts {
  readonly runtime: RuntimeService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly hashOf: (container: Container) => string;
  readonly noteOwner: (id: ContainerId | SandboxId, uid: PodUid) => void;
  readonly sandboxContext: (pod: IdentifiedPod) => Promise<SandboxContext>;
  readonly containerContext: (
    request: {
      readonly pod: IdentifiedPod;
      readonly container: Container;
      readonly observed: ObservedPod;
      readonly image: ContainerImage;
    },
    signal: AbortSignal,
  ) => Promise<Omit<ContainerContext, "restartCount">>;
  /** Begins to fetch an image ahead of its turn; never throws. */
  readonly prefetchImage: (
    pod: IdentifiedPod,
    kind: ContainerKind,
    container: Container,
    sandbox: PodSandboxConfig,
    signal: AbortSignal,
  ) => void;
  /** Throws StartError when the image can't be had now. */
  readonly ensureImage: (
    pod: IdentifiedPod,
    kind: ContainerKind,
    container: Container,
    sandbox: PodSandboxConfig,
    signal: AbortSignal,
  ) => Promise<ContainerImage>;
  /** Runs the hook; the message of its failure, of which an event has told. */
  readonly runPostStart: (
    pod: IdentifiedPod,
    container: Container,
    id: ContainerId,
    signal: AbortSignal,
  ) => Promise<string | undefined>;
  readonly killAfterFailedHook: (pod: IdentifiedPod, id: ContainerId, signal: AbortSignal) => Promise<void>;
  readonly removeContainer: (container: ObservedContainer, signal: AbortSignal, logs?: LeftLogs) => Promise<void>;
  /** A container is made that may use this; resolves, whatever happens, when an agent that is killed now would know. */
  readonly noteResources: (pod: IdentifiedPod, container: string, resources: ContainerResources) => Promise<void>;
  /** Whether what was noted when the container was made is what it is to have. */
  readonly hasItsResources: (pod: IdentifiedPod, container: Container) => boolean;
  /** A container is made that may run on these CPUs. */
  readonly notePlace: (
    container: { readonly id: ContainerId; readonly name: string; readonly pod: IdentifiedPod },
    cpus: string,
  ) => void;
  readonly onStart?: (report: StartReport) => void;
  readonly legacyLogs: { readonly podLogsDir: string; readonly legacyDir: string; readonly log: Logger };
}

const isUnderWay = /already in starting state/;

function rpcTextOf(error: unknown): string {
  return error instanceof CriError ? error.rpcText : messageOf(error);
}
