import { mkdirSync, watch as watchFiles } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { CriClient } from "../../src/connections/cri/index.ts";
import { messageOf, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { Container, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../../test/support/agent.ts";
import type { ApiCluster } from "../../test/support/api-cluster.ts";
import type { PodWatch } from "../../test/support/cluster-pods.ts";
import type { TestContainerd } from "../../test/support/containerd.ts";
import { runRawPod } from "../../test/support/raw-pod.ts";
import { type PatchWitness, startPatchWitness, witnessAnnotation } from "./patch-witness.ts";
import { quantile, rounded } from "./statistics.ts";

/** Probes of good pods: over HTTP each second, by a command every two. */
const httpPeriodMs = 1_000;
const execPeriodMs = 2_000;
/** Every fourth pod is probed by a command. */
const execEvery = 4;
/** Pods whose readiness changes with each probe. */
const pulses = ["pulse-0", "pulse-1", "pulse-2", "pulse-3"];

interface Pulse {
  readonly at: number;
  readonly isReady: boolean;
  readonly isSeen: boolean;
}
const soon = (): AbortSignal => AbortSignal.timeout(60_000);

/** What good pods got in a while, and what the machine gave without the agent at the same time. */
export interface GoodFigures {
  /** From the creation of a pod to its readiness in the API; and a sandbox with a container straight from the runtime. */
  readonly startMs: number;
  readonly bareStartMs: number;
  /** From an answer to a probe that changes a pod's readiness to that in the API; and a change that another process was told to make. */
  readonly statusMs: number;
  readonly bareStatusMs: number;
  readonly starts: number;
  readonly statuses: number;
  /**
   * The longest time between two probes of one pod, in its periods. For probes by a command, without what the runtime
   * took at most for such a command that another client gave it.
   */
  readonly longestProbeGap: number;
  readonly longestBareExecMs: number;
}

/** Pods that do nothing but being probed, some whose readiness changes with each probe, and some that come and go. */
export class GoodPods implements AsyncDisposable {
  readonly names: readonly string[];
  readonly #cluster: ApiCluster;
  readonly #containerd: TestContainerd;
  readonly #cri: CriClient;
  readonly #stop: (() => unknown)[] = [];
  #watch: PodWatch | undefined;
  #witness: PatchWitness | undefined;
  #port = 0;
  /** When each good pod was probed. */
  readonly #probed = new Map<string, number[]>();
  /** Who waits for a change, called with each that is seen. */
  readonly #seers = new Set<(pod: Pod) => void>();
  readonly #statusTimes: { readonly at: number; readonly ms: number }[] = [];
  readonly #pulses = new Map<string, Pulse>();
  #seenBefore = new Map<string, number>();
  #made = 0;

  private constructor(count: number, cluster: ApiCluster, containerd: TestContainerd, cri: CriClient) {
    this.names = Array.from({ length: count }, (_, index) => `good-${index}`);
    this.#cluster = cluster;
    this.#containerd = containerd;
    this.#cri = cri;
  }

  static async start(
    count: number,
    cluster: ApiCluster,
    containerd: TestContainerd,
    cri: CriClient,
  ): Promise<GoodPods> {
    const pods = new GoodPods(count, cluster, containerd, cri);
    await pods.#begin();
    return pods;
  }

  async #begin(): Promise<void> {
    const server = createServer((request, response) => {
      const name = request.url?.slice(1) ?? "";
      this.#note(name);
      response.statusCode = pulses.includes(name) ? this.#nextPulse(name) : 200;
      response.end("ok");
    });
    server.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#stop.push(
      () => server.closeAllConnections(),
      () => server.close(),
    );
    const marks = join(this.#containerd.stateDir, "probed");
    mkdirSync(marks);
    const watcher = watchFiles(marks, (_, name) => this.#note(name ?? ""));
    this.#stop.push(() => watcher.close());
    this.#watch = await this.#cluster.watch((pod) => this.#see(pod));
    for (const [index, name] of this.names.entries()) {
      await this.#cluster.create(
        name,
        index % execEvery === 3 ? this.#probedByCommand(name, marks) : this.#probedByHttp(name),
      );
    }
    for (const name of pulses) await this.#cluster.create(name, this.#probedByHttp(name));
    // Bound to another node: the agent has nothing to do with it.
    await this.#cluster.create("elsewhere", { nodeName: "elsewhere", containers: [{ name: "main", image: "none" }] });
    this.#witness = await startPatchWitness(this.#cluster.adminKubeconfig, "elsewhere");
    for (const name of this.names) await this.#cluster.until(name, "ready", isReady);
    this.#seenBefore = new Map(this.names.map((name) => [name, this.#versions(name).length]));
  }

  /** For as long as it takes, and at least `ms`: pods come and go, and everything is timed. */
  async observe(ms: number, leastStarts: number): Promise<GoodFigures> {
    const began = systemClock.now();
    const starts: number[] = [];
    const bareStarts: number[] = [];
    const bareStatuses: number[] = [];
    const bareExecs: number[] = [0];
    await using scope = new TaskScope();
    scope.spawn("commands of another client", (signal) => this.#timeBareExecs(bareExecs, signal));
    while (starts.length < leastStarts || systemClock.now() - began < ms) {
      starts.push(await this.#timeStart());
      bareStarts.push(await this.#timeBareStart());
      for (let index = 0; index < 3; index++) {
        bareStatuses.push(await this.#timeBareStatus());
        await systemClock.sleep(100, soon());
      }
    }
    await scope.stop();
    const statuses = this.#statusTimes.filter(({ at }) => at >= began).map((each) => each.ms);
    const longestBareExecMs = Math.max(...bareExecs);
    const gaps = this.names.map((name, index) => this.#longestGap(name, index, began, longestBareExecMs));
    return {
      startMs: rounded(quantile(starts, 0.5)),
      bareStartMs: rounded(quantile(bareStarts, 0.5)),
      statusMs: rounded(quantile(statuses.length > 0 ? statuses : [Number.MAX_SAFE_INTEGER], 0.5)),
      bareStatusMs: rounded(quantile(bareStatuses, 0.5)),
      starts: starts.length,
      statuses: statuses.length,
      longestProbeGap: rounded(Math.max(...gaps), 2),
      longestBareExecMs: rounded(longestBareExecMs),
    };
  }

  /** Restarts and readiness that good pods lost, one line each. */
  harm(): readonly string[] {
    return this.names.flatMap((name) => {
      const versions = this.#versions(name).slice(this.#seenBefore.get(name));
      const restarts = versions.at(-1)?.status?.containerStatuses?.[0]?.restartCount ?? 0;
      const flips = versions.filter((pod) => !isReady(pod)).length;
      return [...(restarts > 0 ? [`${name} was restarted`] : []), ...(flips > 0 ? [`${name} was shown unready`] : [])];
    });
  }

  async remove(): Promise<void> {
    for (const name of [...this.names, ...pulses, "elsewhere"]) await this.#cluster.delete(name, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#witness?.[Symbol.asyncDispose]();
    await this.#watch?.[Symbol.asyncDispose]();
    for (const stop of this.#stop) stop();
  }

  #probedByHttp(name: string): Partial<PodSpec> {
    const httpGet = { host: "127.0.0.1", port: this.#port, path: `/${name}` };
    return { containers: [{ ...this.#idle(), readinessProbe: { httpGet, ...patient(httpPeriodMs) } }] };
  }

  /** Each probe leaves a mark on the host. */
  #probedByCommand(name: string, marks: string): Partial<PodSpec> {
    const exec = { command: ["sh", "-c", `echo > /marks/${name}`] };
    const container: Container = {
      ...this.#idle(),
      volumeMounts: [{ name: "marks", mountPath: "/marks" }],
      readinessProbe: { exec, ...patient(execPeriodMs) },
      livenessProbe: { exec: { command: ["true"] }, ...patient(execPeriodMs) },
    };
    return { volumes: [{ name: "marks", hostPath: { path: marks } }], containers: [container] };
  }

  #idle(): Container {
    return { name: "main", image: this.#containerd.images.busybox, command: idleCommand };
  }

  #note(name: string): void {
    const times = this.#probed.get(name);
    if (times === undefined) this.#probed.set(name, [systemClock.now()]);
    else times.push(systemClock.now());
  }

  #nextPulse(name: string): number {
    const isNowReady = this.#pulses.get(name)?.isReady !== true;
    this.#pulses.set(name, { at: systemClock.monotonic(), isReady: isNowReady, isSeen: false });
    return isNowReady ? 200 : 503;
  }

  #see(pod: Pod): void {
    const name = pod.metadata?.name ?? "";
    const pulse = this.#pulses.get(name);
    if (pulse?.isSeen === false && isReady(pod) === pulse.isReady) {
      this.#statusTimes.push({ at: systemClock.now(), ms: systemClock.monotonic() - pulse.at });
      this.#pulses.set(name, { ...pulse, isSeen: true });
    }
    for (const seer of this.#seers) seer(pod);
  }

  async #timeStart(): Promise<number> {
    const name = `comes-${this.#made++}`;
    const from = systemClock.monotonic();
    const isUp = this.#until((pod) => pod.metadata?.name === name && isReady(pod), `${name} is ready`);
    await this.#cluster.create(name, { containers: [this.#idle()] });
    await isUp;
    const tookMs = systemClock.monotonic() - from;
    await this.#cluster.delete(name, 0);
    return tookMs;
  }

  /** A pod that the agent does not know may be cleared away by it between two calls, if those take long: then again. */
  async #timeBareStart(): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#timeOneBareStart();
      } catch (error) {
        if (attempt === 5 || !messageOf(error).includes("not found")) throw error;
      }
    }
  }

  async #timeOneBareStart(): Promise<number> {
    const { endpoint, images, cgroupRoot } = this.#containerd;
    const from = systemClock.monotonic();
    const settings = { endpoint, name: `bare-${this.#made++}`, image: images.busybox, cgroupParent: cgroupRoot };
    const { sandboxId, containerId } = await runRawPod({ ...settings, command: idleCommand });
    const tookMs = systemClock.monotonic() - from;
    const { runtime } = this.#cri;
    await runtime.stopContainer({ containerId, timeout: 0n });
    await runtime.stopPodSandbox({ podSandboxId: sandboxId });
    await runtime.removePodSandbox({ podSandboxId: sandboxId });
    return tookMs;
  }

  /** As often as the agent gives commands to one of the pods. */
  async #timeBareExecs(times: number[], signal: AbortSignal): Promise<void> {
    const { runtime } = this.#cri;
    const { containers } = await runtime.listContainers({ filter: undefined }, { signal });
    const own = new Set(this.names.filter((_, index) => index % execEvery === 3));
    const ids = containers.filter(({ labels }) => own.has(labels["io.kubernetes.pod.name"] ?? "")).map(({ id }) => id);
    for (let turn = 0; !signal.aborted; turn++) {
      const containerId = ids[turn % ids.length];
      if (containerId === undefined) throw new Error("no good pod is probed by a command");
      const from = systemClock.monotonic();
      try {
        await runtime.execSync({ containerId, cmd: ["true"], timeout: 30n }, { signal });
        times.push(systemClock.monotonic() - from);
        await systemClock.sleep(execPeriodMs / 2, signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
    }
  }

  async #timeBareStatus(): Promise<number> {
    const text = `${this.#made++}`;
    const from = systemClock.monotonic();
    const isSeen = this.#until(({ metadata }) => metadata?.annotations?.[witnessAnnotation] === text, "a change");
    this.#witness?.tell(text);
    await isSeen;
    return systemClock.monotonic() - from;
  }

  /** Resolves in the moment in which the API shows it. */
  async #until(condition: (pod: Pod) => boolean, what: string): Promise<void> {
    let isSeen = false;
    let tell = (): void => {};
    const seen = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const seer = (pod: Pod): void => {
      if (!condition(pod)) return;
      isSeen = true;
      tell();
    };
    this.#seers.add(seer);
    try {
      await Promise.race([seen, eventually(async () => isSeen, what, 60_000)]);
    } finally {
      this.#seers.delete(seer);
    }
  }

  #longestGap(name: string, index: number, began: number, longestBareExecMs: number): number {
    const times = [began, ...(this.#probed.get(name) ?? []).filter((time) => time >= began), systemClock.now()];
    const gaps = times.slice(1).map((time, place) => time - (times[place] ?? began));
    const isByCommand = index % execEvery === 3;
    if (!isByCommand) return Math.max(...gaps) / httpPeriodMs;
    return Math.max(0, Math.max(...gaps) - longestBareExecMs) / execPeriodMs;
  }

  #versions(name: string): readonly Pod[] {
    return this.#watch?.versions(name) ?? [];
  }
}

const idleCommand = ["sh", "-c", "trap 'exit 0' TERM; sleep 1d & wait"];

/** Fails by an answer that says so, hardly by a machine that is slow. */
function patient(periodMs: number) {
  return { periodSeconds: periodMs / 1_000, timeoutSeconds: 30, failureThreshold: 1 } as const;
}
