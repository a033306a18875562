import { setImmediate } from "node:timers/promises";
import { CgroupPaths } from "../../../connections/host/index.ts";
import { kubepodsCgroup, type ObservedContainer, type ObservedPod, type PodUid } from "../../../ground/model/index.ts";
import { Aged } from "./aged.ts";
import type { StatsPorts } from "./ports.ts";
import { withRuntimeSamples } from "./runtime-samples.ts";
import { type UsageSample, UsageSampler } from "./usage-sampler.ts";

/** What everything on this node used at about one moment. */
export interface NodeFigures {
  readonly at: number;
  readonly node: UsageSample;
  readonly system: readonly { readonly name: string; readonly sample: UsageSample }[];
  readonly pods: readonly PodFigures[];
}

export interface PodFigures {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** When its sandbox was made. */
  readonly startedAt: number;
  /** undefined: the pod has no cgroup of its own. */
  readonly sample: UsageSample | undefined;
  readonly sandbox: { readonly id: string; readonly path: string | undefined } | undefined;
  readonly containers: readonly ContainerFigures[];
}

export interface ContainerFigures {
  readonly name: string;
  readonly id: string;
  readonly image: string;
  readonly startedAt: number;
  /** undefined: neither the kernel nor the runtime knows. */
  readonly sample: UsageSample | undefined;
}

const goodForMs = 5_000;
const firstRateMs = 300;
const podsAtOnce = 20;

/** The figures of the node: taken when asked for, and then good for a few seconds for whoever else asks. */
export class FiguresTaker {
  readonly #ports: StatsPorts;
  readonly #sampler: UsageSampler;
  readonly #paths: CgroupPaths;
  readonly #figures: Aged<NodeFigures>;

  constructor(ports: StatsPorts) {
    this.#ports = ports;
    this.#sampler = new UsageSampler(ports, ports.settings.pressure);
    this.#paths = new CgroupPaths(ports.cgroups, ports.naming);
    this.#figures = new Aged(ports.clock, goodForMs, (signal) => this.#take(signal));
  }

  async take(signal: AbortSignal): Promise<NodeFigures> {
    return await this.#figures.get(signal);
  }

  /** As `take`, and what was never looked at before is looked at twice, so that everything has a rate. */
  async takeWithRates(signal: AbortSignal): Promise<NodeFigures> {
    const figures = await this.take(signal);
    if (!lacksRates(figures)) return figures;
    await this.#ports.clock.sleep(firstRateMs, signal);
    return await this.#figures.renew(signal);
  }

  /** As they are at this moment, whatever is known. */
  async renew(signal: AbortSignal): Promise<NodeFigures> {
    return await this.#figures.renew(signal);
  }

  /** A cgroup that is in no figures. */
  sample(path: string): UsageSample {
    return this.#sampler.sample(path);
  }

  async #take(signal: AbortSignal): Promise<NodeFigures> {
    const { clock, cgroups, naming, settings } = this.#ports;
    const node = this.#sampler.sample("/");
    const named = { ...settings.systemCgroups, ...(naming.perQos ? { pods: kubepodsCgroup(naming) } : {}) };
    const system = Object.entries(named).flatMap(([name, path]) =>
      path === undefined || !cgroups.exists(path) ? [] : [{ name, sample: this.#sampler.sample(path) }],
    );
    const pods: PodFigures[] = [];
    for (const observed of this.#ports.observed()) {
      const pod = this.#pod(observed);
      if (pod === undefined) continue;
      pods.push(pod);
      // Reading never waits, so others get their turn between.
      if (pods.length % podsAtOnce === 0) await setImmediate();
      signal.throwIfAborted();
    }
    this.#sampler.forgetOld();
    this.#paths.forgetAllBut(new Set(pods.map(({ uid }) => uid)));
    const isWhole = pods.every(({ containers }) => containers.every(({ sample }) => sample !== undefined));
    const told = isWhole ? pods : await withRuntimeSamples(pods, { ...this.#ports, sampler: this.#sampler }, signal);
    return { at: clock.now(), node, system, pods: told };
  }

  #pod({ uid, name, namespace, sandboxes, containers }: ObservedPod): PodFigures | undefined {
    const sandbox = sandboxes.find(({ state }) => state === "ready") ?? sandboxes[0];
    const running = containers.filter(({ state }) => state === "running");
    if (sandbox?.state !== "ready" && running.length === 0) return undefined;
    const path = this.#paths.podPath(uid);
    const pathOf = path === undefined ? () => undefined : this.#paths.below(path);
    return {
      uid,
      name,
      namespace,
      startedAt: sandbox?.createdAt ?? 0,
      sample: path === undefined ? undefined : this.#sampler.sample(path),
      sandbox: sandbox && { id: sandbox.id, path: pathOf(sandbox.id) },
      containers: running.map((container) => this.#container(container, pathOf(container.id))),
    };
  }

  #container({ name, id, image, startedAt }: ObservedContainer, path: string | undefined): ContainerFigures {
    return { name, id, image, startedAt, sample: path === undefined ? undefined : this.#sampler.sample(path) };
  }
}

function lacksRates({ node, system, pods }: NodeFigures): boolean {
  const samples = [
    node,
    ...system.map(({ sample }) => sample),
    ...pods.flatMap(({ sample, containers }) => [sample, ...containers.map((container) => container.sample)]),
  ];
  return samples.some((sample) => sample?.cpu !== undefined && sample.nanoCores === undefined);
}
