import { setMaxListeners } from "node:events";
import {
  type CallOptions,
  type ContainerConfig,
  ContainerEventResponse,
  type ContainerEventType,
  CriError,
  type CriOperation,
  deadlineMs,
  type ImageService,
  type RuntimeService,
} from "../../connections/cri/index.ts";
import { type Clock, LinkedSignal, onAbort, unlessAborted } from "../../ground/base/index.ts";
import type { Behaviour } from "./behaviour.ts";
import { Containers } from "./containers.ts";
import { type CallContext, Ids, Stamps } from "./context.ts";
import { EventHub } from "./event-hub.ts";
import type { ExecScript } from "./exec.ts";
import { Faults } from "./faults.ts";
import { ImageStore } from "./image-store.ts";
import { containerStatusMessage, sandboxStatusMessage } from "./messages.ts";
import { defaultTraits, type RuntimeTraits } from "./options.ts";
import { podUidOf } from "./pod-of-request.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import { runtimeMethods, unimplemented } from "./runtime-methods.ts";
import { Sandboxes } from "./sandboxes.ts";
import { behaviourOf } from "./shell.ts";

export type FakeRuntimeOptions = { readonly clock: Clock } & Partial<RuntimeTraits>;

/** What a restart of the runtime finds: all as it was, everything stopped as after a reboot, or nothing at all. */
export type RestartKeeps = "everything" | "records" | "nothing";

const cniMissing = "cni plugin not initialized";

/** A CRI runtime in this process. Nothing runs, but all of it behaves, under whatever clock it is given. */
export class FakeRuntime {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly faults: Faults;
  readonly imageStore: ImageStore;
  readonly #traits: RuntimeTraits;
  readonly #stamps: Stamps;
  readonly #events = new EventHub();
  readonly #sandboxes: Sandboxes;
  readonly #containers: Containers;
  readonly #behaviours = new Map<string, Behaviour[]>();
  readonly #calls = new Map<CriOperation, number>();
  #execScript: ExecScript = () => undefined;
  #runtimeProblem: string | undefined;
  #networkProblem: string | undefined;
  /** Aborted while the runtime is down. */
  #life = newLife();

  constructor(options: FakeRuntimeOptions) {
    this.#traits = { ...defaultTraits, ...options };
    const { clock, podCidr, logs, handlers, unknownImages } = this.#traits;
    const ids = new Ids();
    this.#stamps = new Stamps(clock);
    const stamps = this.#stamps;
    this.faults = new Faults(clock);
    this.imageStore = new ImageStore(clock, stamps.next, unknownImages);
    const announce = this.#announce.bind(this);
    this.#sandboxes = new Sandboxes({
      ids,
      stamps,
      podCidr,
      handlers: handlers?.map(({ name }) => name),
      announce,
      networkProblem: () => this.#networkProblem,
      interlude: (podUid, { life }) => this.faults.strike("during", "runPodSandbox", podUid, life),
    });
    this.#containers = new Containers({
      clock,
      ids,
      stamps,
      logs,
      announce,
      imageOf: (name) => this.imageStore.find(name),
      behaviourOf: (config) => this.#behaviourFor(config),
      interlude: (podUid, { life }) => this.faults.strike("during", "createContainer", podUid, life),
    });
    this.runtime = this.#runtimeService();
    this.images = this.#imageService();
  }

  /** What containers of this name do from now on: the first instance the first, and so on; the last goes for the rest. */
  behave(containerName: string, ...behaviours: readonly Behaviour[]): void {
    this.#behaviours.set(containerName, [...behaviours]);
  }

  /** Answers commands run in containers; where it gives nothing, the simulated shell does. */
  onExec(script: ExecScript): void {
    this.#execScript = script;
  }

  /** Ends the running containers of this name or id. */
  exit(nameOrId: string, code: number, reason?: string): void {
    const running = this.#containers
      .all()
      .flatMap(({ id, config, life }) =>
        life.step === "running" && (id === nameOrId || config.metadata?.name === nameOrId) ? [life.process] : [],
      );
    if (running.length === 0) throw new Error(`no running container is called "${nameOrId}"`);
    for (const process of running) process.exit(code, reason);
  }

  /** Ends running containers the way the kernel does when memory runs out. */
  oomKill(nameOrId: string): void {
    this.exit(nameOrId, 137, "OOMKilled");
  }

  /** Ends the sandbox's own process, while its containers stay. */
  killSandbox(sandboxId: string): void {
    const sandbox = this.#sandboxes.find(sandboxId, "killSandbox", "cannot kill sandbox");
    if (sandbox === undefined) throw new Error(`no sandbox has the id "${sandboxId}"`);
    this.#sandboxes.die(sandbox);
  }

  setNetworkReady(ready: boolean, problem = cniMissing): void {
    this.#networkProblem = ready ? undefined : problem;
  }

  setRuntimeReady(ready: boolean, problem = "the runtime is not ready"): void {
    this.#runtimeProblem = ready ? undefined : problem;
  }

  get isUp(): boolean {
    return !this.#life.signal.aborted;
  }

  /** The runtime dies: calls in flight and to come fail as Unavailable. Containers go on running. */
  kill(): void {
    this.#life.abort(new CriError("Unavailable", "", "Connection dropped"));
  }

  /** Brings the runtime back. */
  start(keeps: RestartKeeps = "everything"): void {
    if (this.isUp) return;
    this.#life = newLife();
    if (keeps === "everything") return;
    this.#containers.loseProcesses();
    for (const sandbox of this.#sandboxes.all()) this.#sandboxes.die(sandbox);
    if (keeps === "nothing") {
      this.#containers.clear();
      this.#sandboxes.clear();
      this.imageStore.clear();
    }
  }

  restart(keeps: RestartKeeps = "everything"): void {
    this.kill();
    this.start(keeps);
  }

  /** How many calls of the operation have arrived. */
  callCount(operation: CriOperation): number {
    return this.#calls.get(operation) ?? 0;
  }

  /** All calls that have arrived, by operation. */
  callCounts(): ReadonlyMap<CriOperation, number> {
    return new Map(this.#calls);
  }

  sandboxes(): readonly Readonly<SandboxRecord>[] {
    return this.#sandboxes.all();
  }

  containers(): readonly Readonly<ContainerRecord>[] {
    return this.#containers.all();
  }

  #behaviourFor(config: ContainerConfig): Behaviour {
    const queue = this.#behaviours.get(config.metadata?.name ?? "");
    const chosen = queue !== undefined && queue.length > 1 ? queue.shift() : queue?.[0];
    return chosen ?? behaviourOf([...config.command, ...config.args], this.#traits.unknownPrograms);
  }

  #announce(type: ContainerEventType, id: string, sandbox: SandboxRecord): void {
    if (!this.#events.hasStreams) return;
    const event = ContainerEventResponse.fromPartial({
      containerId: id,
      containerEventType: type,
      createdAt: this.#stamps.next(),
      podSandboxStatus: sandboxStatusMessage(sandbox),
      containersStatuses: this.#containers.of(sandbox).map(containerStatusMessage),
    });
    this.#events.publish(event);
  }

  #runtimeService(): RuntimeService {
    const methods = runtimeMethods({
      traits: this.#traits,
      sandboxes: this.#sandboxes,
      containers: this.#containers,
      now: this.#stamps.next,
      conditions: () => ({ runtimeProblem: this.#runtimeProblem, networkProblem: this.#networkProblem }),
      answerExec: (command, container) => this.#execScript(command, container),
    });
    const calls = Object.entries(methods).map(([key, method]) => {
      const operation = key as keyof typeof methods;
      const perform = method as (request: unknown, context: CallContext) => Promise<unknown>;
      return [
        operation,
        (request: unknown, options?: CallOptions) =>
          this.#call(operation, request, options, (context) => perform(request, context)),
      ];
    });
    const getContainerEvents: RuntimeService["getContainerEvents"] = (_request, options) => this.#streamEvents(options);
    return { ...Object.fromEntries(calls), getContainerEvents } as RuntimeService;
  }

  #imageService(): ImageService {
    const store = this.imageStore;
    const nameIn = ({ image }: { readonly image: { readonly image: string } | undefined }): string =>
      image?.image ?? "";
    return {
      listImages: (request, options) => this.#call("listImages", request, options, () => store.list()),
      imageStatus: (request, options) =>
        this.#call("imageStatus", request, options, () => store.status(nameIn(request))),
      pullImage: (request, options) =>
        this.#call("pullImage", request, options, (context) => store.pull(request, context)),
      removeImage: (request, options) =>
        this.#call("removeImage", request, options, () => store.remove(nameIn(request))),
      imageFsInfo: (request, options) => this.#call("imageFsInfo", request, options, () => store.fsInfo()),
    };
  }

  /** Everything that can happen to a call besides its work: counting, death, faults, deadline, the caller giving up. */
  async #call<Response>(
    operation: CriOperation,
    request: unknown,
    { signal, timeoutMs }: CallOptions = {},
    work: (context: CallContext) => Promise<Response>,
  ): Promise<Response> {
    this.#calls.set(operation, this.callCount(operation) + 1);
    signal?.throwIfAborted();
    const life = this.#life.signal;
    if (life.aborted) throw new CriError("Unavailable", operation, "cannot reach the container runtime: it is down");
    const { clock, requestTimeoutMs } = this.#traits;
    using ending = new LinkedSignal(signal);
    using _ = onAbort(life, () =>
      ending.abort(new CriError("Unavailable", operation, "Connection dropped", life.reason)),
    );
    const allowedMs = timeoutMs ?? deadlineMs(operation, request, requestTimeoutMs);
    const late = (): void => ending.abort(new CriError("DeadlineExceeded", operation, "context deadline exceeded"));
    const timer = allowedMs === undefined ? undefined : clock.after(allowedMs, late);
    try {
      const podUid = this.faults.isEmpty ? undefined : podUidOf(request, this.#sandboxes, this.#containers);
      const context: CallContext = { caller: ending.signal, life };
      const answer = async (): Promise<Response> => {
        if (!this.faults.isEmpty) await this.faults.strike("before", operation, podUid, ending.signal);
        const response = await work(context);
        if (!this.faults.isEmpty) await this.faults.strike("after", operation, podUid, ending.signal);
        return response;
      };
      return await unlessAborted(answer(), ending.signal);
    } finally {
      timer?.cancel();
    }
  }

  async *#streamEvents({ signal }: CallOptions = {}): ReturnType<RuntimeService["getContainerEvents"]> {
    this.#calls.set("getContainerEvents", this.callCount("getContainerEvents") + 1);
    signal?.throwIfAborted();
    const life = this.#life.signal;
    if (life.aborted) throw new CriError("Unavailable", "getContainerEvents", "the runtime is down");
    if (this.#traits.events === "absent") unimplemented("getContainerEvents");
    using ending = new LinkedSignal(signal);
    using _ = onAbort(life, () =>
      ending.abort(new CriError("Unavailable", "getContainerEvents", "Connection dropped")),
    );
    await this.faults.strike("before", "getContainerEvents", undefined, ending.signal);
    yield* this.#events.stream(ending.signal);
  }
}

/** Every call in flight listens to it. */
function newLife(): AbortController {
  const life = new AbortController();
  setMaxListeners(0, life.signal);
  return life;
}
