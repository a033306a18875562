import { type InterfaceUsage, readNetworkOf } from "../../../connections/host/index.ts";
import type { TaskScope } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { Aged } from "./aged.ts";
import { type PodFiles, readPodFiles } from "./log-figures.ts";
import type { StatsPorts } from "./ports.ts";
import { type NodeDisk, readNodeDisk } from "./runtime-disk.ts";
import { FiguresTaker, type NodeFigures, type PodFigures } from "./usage-figures.ts";
import type { UsageSample } from "./usage-sampler.ts";
import { type PodVolumeFigures, VolumeFigures } from "./volume-figures.ts";

const firstProcess = 1;
const diskGoodForMs = 10_000;
const filesGoodForMs = 20_000;
// It may change when the runtime is started anew with another configuration.
const imageGoodForMs = 600_000;

/** All figures of this node, each taken when somebody asks and remembered for as long as it is good. */
export class NodeStatistics {
  readonly ports: StatsPorts;
  readonly #figures: FiguresTaker;
  readonly #disk: Aged<NodeDisk>;
  readonly #files: Aged<ReadonlyMap<PodUid, PodFiles>>;
  readonly #volumes: VolumeFigures;
  readonly #sandboxImage: Aged<string | undefined>;

  constructor(scope: TaskScope, ports: StatsPorts) {
    this.ports = ports;
    const { clock, settings } = ports;
    this.#figures = new FiguresTaker(ports);
    this.#disk = new Aged(clock, diskGoodForMs, (signal) => readNodeDisk(ports, signal));
    this.#files = new Aged(clock, filesGoodForMs, async (signal) =>
      readPodFiles((await this.figures(signal)).pods, settings, signal),
    );
    this.#sandboxImage = new Aged(clock, imageGoodForMs, (signal) => ports.sandboxImage(signal));
    this.#volumes = new VolumeFigures(scope, { ...ports, periodMs: settings.volumePeriodMs });
  }

  /** Processor, memory and swap of everything; at most a few seconds old. */
  async figures(signal: AbortSignal): Promise<NodeFigures> {
    return await this.#figures.take(signal);
  }

  async figuresWithRates(signal: AbortSignal): Promise<NodeFigures> {
    return await this.#figures.takeWithRates(signal);
  }

  /** For who measures the time between two looks. */
  async figuresNow(signal: AbortSignal): Promise<NodeFigures> {
    return await this.#figures.renew(signal);
  }

  /** A cgroup that is in no figures. */
  sample(path: string): UsageSample {
    return this.#figures.sample(path);
  }

  /** The image of sandboxes; empty while the runtime does not tell, which is no reason to tell nothing at all. */
  async sandboxImage(signal: AbortSignal): Promise<string> {
    return (await this.#sandboxImage.get(signal).catch(() => undefined)) ?? "";
  }

  async disk(signal: AbortSignal): Promise<NodeDisk> {
    return await this.#disk.get(signal);
  }

  async files(signal: AbortSignal): Promise<ReadonlyMap<PodUid, PodFiles>> {
    return await this.#files.get(signal);
  }

  async volumes(pods: readonly PodFigures[], signal: AbortSignal): Promise<ReadonlyMap<PodUid, PodVolumeFigures>> {
    return await this.#volumes.ofAll(
      pods.map(({ uid }) => uid),
      signal,
    );
  }

  /** What is behind the sandbox's network interfaces; empty when it can't be seen or is the node's own network. */
  networkOf({ sandbox }: PodFigures): readonly InterfaceUsage[] {
    const [pid] = sandbox?.path === undefined ? [] : this.ports.cgroups.processes(sandbox.path);
    return pid === undefined ? [] : readNetworkOf(pid, this.ports.settings.hostRoot);
  }

  nodeNetwork(): readonly InterfaceUsage[] {
    return readNetworkOf(firstProcess, this.ports.settings.hostRoot);
  }
}
