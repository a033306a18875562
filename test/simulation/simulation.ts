import {
  configMaps,
  type Kind,
  kindByPath,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  secrets,
} from "../../src/beside/localapi/kinds/index.ts";
import type { ApiObject } from "../../src/beside/localapi/object.ts";
import { withMetadata, withoutMetadata } from "../../src/beside/localapi/object.ts";
import type { AgentConfig } from "../../src/ground/config/index.ts";
import type { PodSpec } from "../../src/ground/model/index.ts";
import { agentConfig, beginAgent, manifestDir, type RunningAgent, writeKubeconfig } from "./agent.ts";
import { Dice } from "./machine/dice.ts";
import { become, Machine } from "./machine/machine.ts";
import { Pressure } from "./machine/pressure.ts";
import type { Life } from "./machine/timeline.ts";
import { ApiNeighbour } from "./neighbours/api.ts";
import { ClaimNeighbour, claimDriver } from "./neighbours/claims.ts";
import { DeviceNeighbour, deviceResource } from "./neighbours/devices.ts";
import type { PluginNeighbour } from "./neighbours/plugin.ts";
import { RuntimeNeighbour } from "./neighbours/runtime.ts";
import { driverName, StorageNeighbour, volumeHandle } from "./neighbours/storage.ts";
import { Trace } from "./neighbours/trace.ts";
import type { ContainerPlan, PodPlan } from "./pod-maker.ts";
import { Witness } from "./witness/witness.ts";

interface Amounts {
  readonly cpu: string;
  readonly memory: string;
}

/** A machine with an agent, its runtime and its API, and everything that people do to them. */
export class Simulation {
  readonly seed: number;
  readonly machine: Machine;
  readonly trace: Trace;
  readonly runtime: RuntimeNeighbour;
  readonly api: ApiNeighbour;
  readonly storage: StorageNeighbour;
  readonly devices: DeviceNeighbour;
  readonly claims: ClaimNeighbour;
  readonly plugins: readonly PluginNeighbour[];
  readonly pressure: Pressure;
  readonly witness: Witness;
  /** What is wanted: by name. */
  readonly wanted = new Map<string, PodPlan>();
  /** Containers that do not answer, by name. */
  readonly unready = new Set<string>();
  readonly dead = new Set<string>();
  readonly containers = new Map<string, ContainerPlan>();
  readonly #config: AgentConfig;
  readonly #dice: Dice;
  readonly #hookRuns = new Map<string, number>();
  #agent: RunningAgent | undefined;
  #lives = 0;
  /** After so many more events of its own the agent is killed. */
  #killIn = Number.POSITIVE_INFINITY;
  #restartAfterMs = 0;

  private constructor(seed: number, config: AgentConfig) {
    this.seed = seed;
    this.#config = config;
    this.#dice = new Dice(seed, "simulation");
    this.machine = new Machine(seed);
    become(this.machine);
    const { timeline, disk } = this.machine;
    this.trace = new Trace(() => timeline.now);
    writeKubeconfig(this.machine);
    this.runtime = new RuntimeNeighbour(this.machine, seed, this.trace);
    this.api = new ApiNeighbour(this.machine, seed, this.trace);
    this.storage = new StorageNeighbour(this.machine, seed, this.trace);
    this.devices = new DeviceNeighbour(this.machine, seed, this.trace);
    this.claims = new ClaimNeighbour(this.machine, seed, this.trace);
    this.plugins = [this.storage, this.devices, this.claims];
    this.pressure = new Pressure(this.machine, seed);
    this.witness = new Witness(this);
    const { fake } = this.runtime;
    fake.imageStore.preload("busybox:1");
    fake.imageStore.publish({ name: "slow:1", pullMs: 8_000 });
    fake.onExec((command, container) => this.#exec(command, container.config.metadata?.name ?? ""));
    this.pressure.eaters = () =>
      fake.containers().flatMap(({ life, config, sandbox }) => {
        const cgroup = sandbox.config.linux?.cgroupParent ?? "";
        return life.step === "running" ? [{ container: config.metadata?.name ?? "", cgroup }] : [];
      });
    disk.isCgroupBusy = (path) =>
      fake
        .containers()
        .some(
          ({ life, sandbox }) => life.step === "running" && path.endsWith(sandbox.config.linux?.cgroupParent ?? "-"),
        );
    this.machine.neighbours = {
      callRuntime: (operation, request, call) => this.runtime.call(operation, request, call),
      streamRuntime: (operation, call) => this.runtime.stream(operation, call),
      callPlugin: (path, operation, request, call) => this.#pluginAt(path).call(path, operation, request, call),
      streamPlugin: (path, operation, call) => this.#pluginAt(path).stream(operation, call),
      watchPlugin: (path, onChange) => this.#pluginAt(path).watchPresence(onChange),
      askApi: (request, signal) => this.api.ask(request, signal),
      cutApi: () => this.api.cut("the client has had enough"),
      dial: (host, port) => this.#dial(host, port),
    };
    this.api.create(configMaps, "default", { metadata: { name: "settings" }, data: { colour: "blue" } });
    this.api.create(secrets, "default", { metadata: { name: "password" }, data: { password: "c2VjcmV0" } });
    this.#offerVolumes();
    this.#keepWritingBack();
  }

  static async begin(seed: number): Promise<Simulation> {
    return new Simulation(seed, await agentConfig());
  }

  get agent(): RunningAgent | undefined {
    return this.#agent;
  }

  get life(): Life | undefined {
    return this.#agent?.life;
  }

  /** Lets time pass. */
  async run(ms: number): Promise<void> {
    const { timeline } = this.machine;
    const until = timeline.now + ms;
    await timeline.runUntil(until, () => {
      if (timeline.present !== undefined && timeline.present === this.life && --this.#killIn <= 0) {
        this.#killIn = Number.POSITIVE_INFINITY;
        this.kill("at an await");
      }
      this.witness.look();
      return this.witness.hasFailed;
    });
  }

  // The agent

  start(afterMs = 0): void {
    const { timeline } = this.machine;
    const life: Life = { number: ++this.#lives, startedAt: timeline.now + afterMs, isOver: false };
    timeline.after(afterMs, life, () => {
      if (this.#agent !== undefined) return;
      this.trace.add("world", `agent ${life.number} starts`);
      const agent = beginAgent(
        { ...this, onLog: (message, fields, whose) => this.witness.heard(message, fields, whose) },
        life,
        this.#config,
      );
      this.#agent = agent;
      agent.started.catch((error: unknown) => this.#ended(agent, error));
      agent.scope.signal.addEventListener("abort", () => {
        const { reason } = agent.scope.signal;
        if (reason instanceof Error && reason.cause !== undefined) this.#ended(agent, reason.cause);
      });
    });
  }

  /** The process ends at once, and a supervisor starts it again. */
  kill(how: string, restartAfterMs = this.#dice.pick([100, 1_000, 5_000, 30_000])): void {
    const { life } = this;
    if (life === undefined) return;
    this.trace.add("world", `agent ${life.number} is killed ${how}`);
    this.#endLife(life);
    this.start(restartAfterMs);
  }

  killSoon(): void {
    this.#killIn = this.#dice.pick([1, 3, 10, 30, 100, 300].map((most) => this.#dice.whole(1, most)));
  }

  /** As SIGTERM does: loops end, containers stay. */
  stop(): void {
    const agent = this.#agent;
    if (agent === undefined) return;
    this.trace.add("world", `agent ${agent.life.number} is asked to stop`);
    const { timeline } = this.machine;
    timeline.after(0, agent.life, () => {
      void agent.scope.stop().then(() => {
        if (agent.life.isOver) return;
        this.trace.add("world", `agent ${agent.life.number} has stopped`);
        this.#endLife(agent.life);
        this.start(1_000);
      });
    });
    // A supervisor does not wait for ever.
    timeline.after(90_000, undefined, () => {
      if (agent.life.isOver) return;
      this.witness.fail(
        `agent ${agent.life.number} does not stop within 90 s of being asked to; ${agent.scope.size} tasks are left`,
      );
    });
  }

  /** Power fails: what was not on the disk is lost, every process is gone. */
  losePower(): void {
    const { life } = this;
    this.trace.add("world", "the power fails");
    if (life !== undefined) this.#endLife(life);
    const { fake } = this.runtime;
    this.witness.withoutPower(() => {
      fake.kill();
      fake.start("records");
    });
    this.witness.lostPower();
    this.machine.disk.loseMemory();
    this.machine.boot();
    for (const plugin of this.plugins) {
      plugin.stop("its socket");
      this.machine.timeline.after(this.#dice.between(100, 30_000), undefined, () => plugin.start());
    }
    this.start(5_000);
  }

  #endLife(life: Life): void {
    life.isOver = true;
    if (this.#agent?.life === life) this.#agent = undefined;
    this.#killIn = Number.POSITIVE_INFINITY;
    this.machine.disk.end(life);
    this.runtime.end(life);
    for (const plugin of this.plugins) plugin.end(life);
    this.api.end(life);
    this.pressure.end(life);
  }

  /** The agent ended by itself. */
  #ended(agent: RunningAgent, error: unknown): void {
    if (
      agent.life.isOver ||
      (agent.scope.signal.aborted &&
        !(agent.scope.signal.reason instanceof Error && agent.scope.signal.reason.cause !== undefined))
    )
      return;
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.trace.add("world", `agent ${agent.life.number} ended: ${why}`);
    if (!this.witness.mayEnd(error)) this.witness.fail(`agent ${agent.life.number} ended by itself: ${why}`);
    this.#restartAfterMs = 1_000;
    this.machine.timeline.after(0, undefined, () => {
      this.#endLife(agent.life);
      this.start(this.#restartAfterMs);
    });
  }

  // Pods

  addPod(plan: PodPlan): void {
    this.wanted.set(plan.name, plan);
    for (const container of plan.containers) {
      this.containers.set(container.name, container);
      this.runtime.fake.behave(container.name, ...container.behaviours);
    }
    const { restartPolicy, hostNetwork } = plan.pod.spec ?? {};
    const what = plan.containers.map(({ role, name }) => `${role} ${name}`).join(", ");
    this.trace.add(
      "world",
      `wants ${plan.source} pod ${plan.name}: ${restartPolicy}${hostNetwork ? " on the host's network" : ""}; ${what}`,
    );
    if (plan.source === "api") {
      const uid = this.api.create(pods, "default", plan.pod).metadata.uid ?? "";
      for (const { claim } of plan.containers) if (claim !== undefined) this.#allocate(claim, plan.name, uid);
      this.witness.isWanted(plan, uid);
    } else {
      const path = `${manifestDir}/${plan.name}.json`;
      this.machine.disk.addFile(`${manifestDir}/.new`, JSON.stringify(plan.pod));
      this.machine.disk.rename(`${manifestDir}/.new`, path);
      this.machine.disk.keepNames();
      this.witness.isWanted(plan, undefined);
    }
  }

  /** `graceSeconds` undefined: the pod's own. */
  removePod(name: string, graceSeconds?: number): void {
    const plan = this.wanted.get(name);
    if (plan === undefined) return;
    this.wanted.delete(name);
    this.trace.add(
      "world",
      `removes ${plan.source} pod ${name}${graceSeconds === undefined ? "" : ` within ${graceSeconds} s`}`,
    );
    this.witness.isUnwanted(plan, (graceSeconds ?? plan.pod.spec?.terminationGracePeriodSeconds) === 0);
    if (plan.source === "file") {
      this.machine.disk.unlink(`${manifestDir}/${name}.json`);
      this.machine.disk.keepNames();
      return;
    }
    if (this.api.get(pods, `default/${name}`) === undefined) return;
    this.api.delete(pods, "default", name, graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds });
  }

  /** Pods that have a device, or may still have one. */
  get devicePods(): number {
    const uses = (plan: PodPlan): boolean => plan.containers.some(({ hasDevice }) => hasDevice);
    return this.witness.present().filter(uses).length;
  }

  /** Whether the Node has ever told of devices: no scheduler sends a pod that wants one to where nobody knows of any. */
  get offersDevices(): boolean {
    const node = this.api.get(nodes, "sim") as { readonly status?: { readonly capacity?: object } } | undefined;
    return deviceResource in (node?.status?.capacity ?? {});
  }

  isNameTaken(name: string): boolean {
    return this.api.get(pods, `default/${name}`) !== undefined;
  }

  /** Whoever held pods back lets them go. */
  releaseFinalizers(): void {
    for (const pod of this.api.list(pods)) {
      const { deletionTimestamp, finalizers, name = "" } = pod.metadata;
      if (deletionTimestamp === undefined || finalizers === undefined) continue;
      this.api.put(pods, withoutMetadata(pod, "finalizers"));
      // The one that lets go is the one that removes what nothing else holds.
      const grace = pod.metadata.deletionGracePeriodSeconds ?? 0;
      if (grace === 0 && this.api.get(pods, `default/${name}`) !== undefined) {
        this.api.delete(pods, "default", name, { gracePeriodSeconds: 0 });
      }
    }
  }

  changeImage(name: string): void {
    const plan = this.wanted.get(name);
    const pod = this.api.get(pods, `default/${name}`) as
      | (ApiObject & { spec: { containers: { name: string; image: string }[] } })
      | undefined;
    if (plan?.source !== "api" || pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    const [first, ...others] = pod.spec.containers;
    if (first === undefined) return;
    const image = first.image === "app:1" ? "app:2" : "app:1";
    this.trace.add("world", `changes the image of ${name}/${first.name} to ${image}`);
    this.witness.ailments.isChanged(first.name);
    const spec = { ...pod.spec, containers: [{ ...first, image }, ...others] };
    this.api.put(pods, withMetadata({ ...pod, spec }, { generation: (pod.metadata.generation ?? 1) + 1 }));
  }

  /** Gives a container other amounts while it runs; of the same quality of service, or the API would refuse it. */
  resize(name: string, amounts: Amounts, which: number): void {
    const plan = this.wanted.get(name);
    const pod = this.api.get(pods, `default/${name}`) as (ApiObject & { readonly spec: PodSpec }) | undefined;
    if (plan?.source !== "api" || pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    if (pod.spec.resources !== undefined) {
      this.witness.isResized(plan);
      this.#resizeWhole(pod, {
        cpu: `${Number.parseInt(amounts.cpu, 10) * 10}m`,
        memory: `${Number.parseInt(amounts.memory, 10) * 4}Mi`,
      });
      return;
    }
    const { containers } = pod.spec;
    const chosen = containers[which % containers.length];
    const { requests, limits } = chosen?.resources ?? {};
    if (chosen === undefined || requests?.["cpu"] === undefined) return;
    this.witness.isResized(plan);
    this.trace.add("world", `resizes ${name}/${chosen.name} to ${amounts.cpu} and ${amounts.memory}`);
    if (chosen.resizePolicy?.some(({ restartPolicy }) => restartPolicy === "RestartContainer") === true)
      this.witness.ailments.isChanged(chosen.name);
    const resources = {
      ...chosen.resources,
      ...(limits?.["cpu"] === undefined ? {} : { limits: { ...limits, ...amounts } }),
      requests: { ...requests, ...amounts },
    };
    const spec = {
      ...pod.spec,
      containers: containers.map((each) => (each === chosen ? { ...each, resources } : each)),
    };
    this.api.put(pods, withMetadata({ ...pod, spec }, { generation: (pod.metadata.generation ?? 1) + 1 }));
  }

  /** Gives a pod other amounts as a whole; its containers have none of their own. */
  #resizeWhole(pod: ApiObject & { readonly spec: PodSpec }, amounts: Amounts): void {
    this.trace.add("world", `resizes ${pod.metadata.name} as a whole to ${amounts.cpu} and ${amounts.memory}`);
    for (const { name, resizePolicy } of [...pod.spec.containers, ...(pod.spec.initContainers ?? [])])
      if (resizePolicy !== undefined) this.witness.ailments.isChanged(name);
    const spec = { ...pod.spec, resources: { requests: amounts, limits: amounts } };
    this.api.put(pods, withMetadata({ ...pod, spec }, { generation: (pod.metadata.generation ?? 1) + 1 }));
  }

  /** As the scheduler does. */
  #allocate(claim: string, pod: string, uid: string): void {
    const { api } = this;
    const kind = claimKind();
    const results = [{ request: "one", driver: claimDriver, pool: "sim", device: claim }];
    const request = { name: "one", exactly: { deviceClassName: "simulation" } };
    const made = api.create(kind, "default", { metadata: { name: claim }, spec: { devices: { requests: [request] } } });
    const reservedFor = [{ resource: "pods", name: pod, uid }];
    api.put(kind, { ...made, status: { allocation: { devices: { results } }, reservedFor } });
  }

  /** Nobody needs the claims of a pod that is gone. */
  forgetClaims({ containers }: PodPlan): void {
    for (const { claim } of containers) {
      if (claim === undefined || this.api.get(claimKind(), `default/${claim}`) === undefined) continue;
      this.api.delete(claimKind(), "default", claim);
    }
  }

  #pluginAt(socketPath: string): PluginNeighbour {
    return this.plugins.find((plugin) => plugin.owns(socketPath)) ?? this.storage;
  }

  #exec(command: readonly string[], container: string) {
    const [program, argument] = command;
    if (program === "check") {
      const fails = this.dead.has(container) || (argument === "readiness" && this.unready.has(container));
      return { exitCode: fails ? 1 : 0, afterMs: 20 };
    }
    if (program === "hook" && argument === "start") {
      const runs = (this.#hookRuns.get(container) ?? 0) + 1;
      this.#hookRuns.set(container, runs);
      const fails = runs <= (this.containers.get(container)?.failingHooks ?? 0);
      return { exitCode: fails ? 1 : 0, afterMs: 300 };
    }
    return { exitCode: 0, afterMs: 1_500 };
  }

  #dial(host: string, port: number): "accepts" | "refuses" | "is silent" {
    for (const { config, life, sandbox } of this.runtime.fake.containers()) {
      const name = config.metadata?.name ?? "";
      const known = this.containers.get(name)?.port ?? -1;
      if (life.step !== "running" || (known !== port && known + 1 !== port)) continue;
      if (sandbox.ip !== undefined && sandbox.ip !== host) continue;
      if (this.dead.has(name)) return "is silent";
      return known === port && this.unready.has(name) ? "refuses" : "accepts";
    }
    return "refuses";
  }

  /** A storage driver, and a claim that all pods may use. */
  #offerVolumes(): void {
    const { api } = this;
    const spec = { attachRequired: false, volumeLifecycleModes: ["Persistent", "Ephemeral"] };
    api.create(kindOf("storage.k8s.io", "csidrivers"), "", { metadata: { name: driverName }, spec });
    const shared = { accessModes: ["ReadWriteMany"], storageClassName: "" };
    const amount = { storage: "1Gi" };
    const claim = api.create(persistentVolumeClaims, "default", {
      metadata: { name: "data", annotations: { "pv.kubernetes.io/bind-completed": "yes" } },
      spec: { ...shared, volumeName: "pv-data", resources: { requests: amount } },
    });
    const volume = api.create(persistentVolumes, "", {
      metadata: { name: "pv-data" },
      spec: {
        ...{ ...shared, capacity: amount, csi: { driver: driverName, volumeHandle } },
        claimRef: { kind: "PersistentVolumeClaim", namespace: "default", name: "data", uid: claim.metadata.uid },
      },
    });
    for (const [kind, object] of [
      [persistentVolumeClaims, claim],
      [persistentVolumes, volume],
    ] as const) {
      api.put(kind, { ...object, status: { phase: "Bound" } });
    }
    for (const plugin of this.plugins) plugin.start();
  }

  #keepWritingBack(): void {
    this.machine.timeline.after(30_000, undefined, () => {
      this.machine.disk.writeBack();
      this.#keepWritingBack();
    });
  }
}

function kindOf(group: string, plural: string): Kind {
  const kind = kindByPath(group, "v1", plural);
  if (kind === undefined) throw new Error(`the local API knows no ${plural}`);
  return kind;
}

function claimKind(): Kind {
  return kindOf("resource.k8s.io", "resourceclaims");
}
