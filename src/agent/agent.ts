import { checkSwap, ServiceManager } from "../connections/host/index.ts";
import { onAbort, TaskScope, unlessAborted } from "../ground/base/index.ts";
import { capacitySettingsOf, mayChangeHost, NODELET_VERSION } from "../ground/config/index.ts";
import { amountsOf, overReserved } from "../ground/model/index.ts";
import { showIdentity } from "../node/metrics/index.ts";
import { memoryMayReachDisk, oldCgroups } from "../node/object/index.ts";
import type { Turn } from "../node/rollout/index.ts";
import { type NodeApiPorts, startWatchdog, watchLog } from "../node/server/index.ts";
import type { AgentParts } from "./build-agent.ts";
import { openPodResources } from "./build-pod-resources.ts";
import type { AgentInputs } from "./inputs.ts";
import { keepSystemCgroups } from "./keep-system-cgroups.ts";
import { applyLive, checksOf, configApi } from "./rollout-ports.ts";

/** One step of the start; the order matters, since an error at one hides what comes after. */
export interface Stage {
  readonly name: string;
  start(): Promise<void>;
}

/** The agent as it was built. `run` starts it stage by stage, and stops it in the reverse order. */
export class Agent {
  readonly parts: AgentParts;
  readonly stages: readonly Stage[];
  readonly #listeners: NodeApiPorts;
  readonly #task: AgentInputs["task"];
  readonly #rollout: AgentInputs["rollout"];
  /** Undefined once everything has begun to work. */
  #stage: string | undefined = "build";
  readonly #service: ServiceManager;
  readonly #early = new TaskScope();
  readonly #listening = new TaskScope();
  #claim: Disposable | undefined;
  /** The stage that is being started, or was last. */
  #starting: Promise<void> = Promise.resolve();

  constructor(parts: AgentParts, listeners: NodeApiPorts, { task, rollout }: Pick<AgentInputs, "task" | "rollout">) {
    const { base } = parts;
    this.parts = parts;
    this.#listeners = listeners;
    this.#task = task;
    this.#rollout = rollout;
    this.#service = new ServiceManager(base.process.service.notifySocket, base.log);
    this.stages = [
      { name: "watchdog", start: () => this.#startWatchdog() },
      { name: "lock file", start: () => base.host.holdLock(base.config, this.#earlyPorts()) },
      { name: "trial", start: () => this.#attendTrial() },
      { name: "checks", start: () => this.#check() },
      { name: "identity", start: () => this.#showIdentity() },
      { name: "directories", start: () => this.#prepareDirectories() },
      { name: "kernel", start: () => this.#tuneKernel() },
      { name: "own process", start: () => this.#tuneProcess() },
      { name: "listeners", start: () => this.#listen() },
      { name: "runtime", start: () => this.#connectRuntime() },
      { name: "pods", start: () => this.#startPods() },
    ];
  }

  /**
   * Starts the agent, works until `stop` is aborted or somebody else wants the lock file, and stops: loops of the pods,
   * listeners, runtime, watchdog. Containers are not touched. Rejects when the agent cannot start or a loop it
   * cannot do without dies. `begin anew`: it ended for another configuration, and is to be built with that one.
   */
  async run(stop: AbortSignal): Promise<"stop" | "begin anew"> {
    const { ending, log } = this.parts.base;
    using _ = onAbort(stop, () => ending.request("asked to stop"));
    for (const scope of [this.#early, this.#listening, this.parts.base.scope]) ending.follow(scope);
    try {
      for (const stage of this.stages) await this.#start(stage);
      await ending.reached();
    } catch (error) {
      if (!ending.signal.aborted) throw error;
      // The start gave up because the agent ends; only the ending knows whether that is a failure.
      log.debug(2, "The start was given up", { error });
      await ending.reached();
    } finally {
      await this.#stop();
    }
    log.info("Stopped; containers keep running");
    return ending.wantsAnotherTurn ? "begin anew" : "stop";
  }

  /**
   * Ends this turn for another one. Not while the machine is being turned off: with the turn would go the lock by which
   * the machine waits for its pods, and no other one is given out any more.
   */
  beginAnew(why: string): void {
    const { base, shutdown } = this.parts;
    shutdown.progress.whenNotUnderWay(() => base.ending.beginAnew(why));
  }

  async #start({ name, start }: Stage): Promise<void> {
    const { signal } = this.parts.base.ending;
    signal.throwIfAborted();
    this.#stage = name;
    this.#starting = start();
    await unlessAborted(this.#starting, signal);
  }

  async #stop(): Promise<void> {
    await this.parts.base.scope.stop();
    // What was being started when the end came has lost its ground by now, and gives up.
    await this.#starting.catch(() => undefined);
    await this.#listening.stop();
    this.parts.base.cri.close();
    this.#claim?.[Symbol.dispose]();
    await this.#early.stop();
  }

  /** Answers systemd's watchdog from here on, and tells systemd as soon as the agent is about to end. */
  async #startWatchdog(): Promise<void> {
    const { config, clock, random, log, health, ending, process, bringTraces } = this.parts.base;
    const scope = this.#early;
    const service = this.#service;
    const standalone = config.flags.kubeconfig === "";
    log.info("Starting nodelet", { version: NODELET_VERSION, kubeletVersion: config.reportedVersion, standalone });
    if (!process.isRoot) log.error("The agent needs to run as root", new Error("it does not run as uid 0"));
    watchLog(health, process.logControl);
    if (bringTraces !== undefined) scope.spawn("traces", (signal) => bringTraces(signal));
    onAbort(ending.signal, () => {
      const isStop = !ending.wantsAnotherTurn;
      log.info(isStop ? "Stopping" : "Starting again with another configuration", { why: ending.signal.reason });
      const status = isStop ? "Stopping" : "Taking up another configuration";
      scope.spawn("say stopping", () => service.tell(isStop ? { stopping: true, status } : { status }));
    });
    if (!config.gates.enabled("SystemdWatchdog")) return;
    startWatchdog(process.service, process.pid, { health, service, clock, log, random }, scope);
  }

  #earlyPorts() {
    const { clock, log, ending } = this.parts.base;
    return { clock, log, ending, scope: this.#early };
  }

  async #check(): Promise<void> {
    const { base, events } = this.parts;
    const swaps = await base.host.swaps();
    checkSwap(base.config.kubelet.failSwapOn, swaps);
    const { cpus, memoryBytes } = base.host.facts.machine;
    const capacity = amountsOf({ cpu: String(cpus.logical), memory: String(memoryBytes) });
    const problem = overReserved(capacity, capacitySettingsOf(base.config));
    if (problem !== undefined) throw new Error(problem);
    if (swaps.length > 0 && !(await base.host.canMountWithoutSwap())) events.node(memoryMayReachDisk);
  }

  async #showIdentity(): Promise<void> {
    const { base, events } = this.parts;
    const { config, host, log, metrics } = base;
    const { machine, cgroups } = host.facts;
    log.info("Node identified", { nodeName: config.nodeName, bootId: machine.bootId, cgroupVersion: cgroups.version });
    showIdentity(metrics.figures, config, machine, cgroups.version);
    if (cgroups.version === 1) events.node(oldCgroups);
  }

  async #prepareDirectories(): Promise<void> {
    const { config, host, rootDir, log } = this.parts.base;
    this.#claim = await host.prepareDirectories(config, rootDir, log);
  }

  async #tuneKernel(): Promise<void> {
    const { config, host, log, process } = this.parts.base;
    if (mayChangeHost(process.environment)) await host.tuneKernel(config, log.named("kernel"));
  }

  async #tuneProcess(): Promise<void> {
    const { base } = this.parts;
    await base.host.tuneProcess(base.config, this.#earlyPorts());
    await keepSystemCgroups(base, this.#early);
  }

  async #listen(): Promise<void> {
    const { config, host, rootDir } = this.parts.base;
    await host.listen(config, rootDir, this.#listeners, this.#listening);
    // Ready means that the agent answers; a runtime that comes late must not run into systemd's start timeout.
    const waiting = `Waiting for the container runtime at ${config.kubelet.containerRuntimeEndpoint}`;
    await this.#service.tell({ ready: true, status: waiting });
    // From here on people can see how the agent does with what they change.
    this.#rollout?.follow(this.#turn, this.parts.base.scope);
  }

  /** Whatever comes next may wait for ever because of the configuration. The lock file is not up to that. */
  async #attendTrial(): Promise<void> {
    this.#rollout?.attend(this.#turn, this.parts.base.scope);
  }

  get #turn(): Turn {
    const { base, events, cluster } = this.parts;
    return {
      checks: () => checksOf(base.health),
      stage: () => this.#stage,
      apply: (config) => applyLive(this.parts, config),
      beginAnew: (why) => this.beginAnew(why),
      recordEvent: events.node,
      onReport: base.wakes.node.tell,
      api: cluster && configApi(cluster),
    };
  }

  async #connectRuntime(): Promise<void> {
    const { link, ending, metrics } = this.parts.base;
    const { identity, isOutdated } = await link.connect(ending.signal);
    if (isOutdated) metrics.runtime.isOutdated();
    await this.#service.tell({ status: `Connected to ${identity.name} ${identity.version}` });
  }

  /** Sources, workers and what they drive, in the order in which they need each other. */
  async #startPods(): Promise<void> {
    const { base, cluster, node, sources, images, devices, registration, placed, cgroups, volumes } = this.parts;
    const { claims, engine, member, shutdown, memory, upkeep, sight } = this.parts;
    const { scope, log, ending } = base;
    await cluster?.start(scope);
    await node.start();
    await sources.start(scope);
    await images.start();
    await placed.placement.start();
    await cgroups.start(scope);
    await volumes.start(scope);
    await devices.start(scope);
    await claims?.start(scope);
    scope.spawn("plugin registration", (signal) => registration.run(signal));
    // No pod is started on a machine that is being turned off.
    await shutdown.start(scope);
    scope.spawn("out of memory", (signal) => memory.run(signal));
    await openPodResources(base, { devices, claims, placed, sight });
    engine.start(scope);
    scope.spawn("cgroup healing", (signal) => cgroups.run(signal));
    scope.spawn("CPUs of containers", (signal) => placed.cpusets.run(signal));
    await member?.start();
    upkeep.start(scope);
    log.info("Started nodelet");
    this.#stage = undefined;
    const task = this.#task;
    if (task === undefined) return;
    scope.spawn("the task at hand", async (signal) => {
      await task({ views: engine.views, sourcesReady: () => sight.mux.allReady() }, signal);
      ending.request("the task is done");
    });
  }
}
