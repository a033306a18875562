import { CgroupPaths, readDisksTotal, readNetworkOf, readTaskCount } from "../../../connections/host/index.ts";
import { unlessAborted, withDeadline } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { DashboardPorts } from "../ports.ts";
import { lookAtPulls } from "../views/look-at-pulls.ts";
import { type Figure, nodeSeries, type SampleView } from "../wire.ts";
import { Rates } from "./rates.ts";
import { figureOf, Series } from "./series.ts";

const firstProcess = 1;
const nanosecondsPerSecond = 1e9;
/** Of pods whose page is open, containers are measured too. */
const closelyForMs = 15_000;
const diskEveryMs = 10_000;
/** What a disk that is well answers within. */
const diskWithinMs = 300;

type SamplerPorts = Pick<DashboardPorts, "clock" | "cgroups" | "naming" | "disk" | "pods" | "images">;

/** What the node and its pods use, measured when told to and kept for charts. */
export class Sampler {
  readonly #ports: SamplerPorts;
  readonly #rates = new Rates();
  readonly #node = new Series(nodeSeries.length);
  readonly #pods = new Map<string, Series>();
  /** By uid and container. */
  readonly #containers = new Map<string, Series>();
  readonly #closely = new Map<string, number>();
  readonly since: number;
  #paths: CgroupPaths | undefined;
  #disk: { readonly at: number; readonly usedBytes: number | undefined; capacityBytes: number | undefined } | undefined;
  #asked: Promise<void> | undefined;
  #latest: SampleView | undefined;

  constructor(ports: SamplerPorts) {
    this.#ports = ports;
    this.since = ports.clock.now();
  }

  get diskBytes(): number | undefined {
    return this.#disk?.capacityBytes;
  }

  get latest(): SampleView | undefined {
    return this.#latest;
  }

  nodeHistory(): (readonly Figure[])[] {
    return this.#node.rows();
  }

  podHistory(uid: string): (readonly Figure[])[] {
    return this.#pods.get(uid)?.rows() ?? [];
  }

  /** What is known of the containers; from now on they are measured for as long as somebody asks. */
  containerHistory(uid: string, container: string): (readonly Figure[])[] {
    this.#closely.set(uid, this.#ports.clock.monotonic() + closelyForMs);
    return this.#containers.get(containerKey(uid, container))?.rows() ?? [];
  }

  async sample(signal: AbortSignal): Promise<SampleView> {
    const { clock, pods } = this.#ports;
    const at = clock.monotonic();
    await this.#lookAtDisk(at, signal);
    const measured: Record<string, readonly [Figure, Figure]> = {};
    const shown = new Set<string>();
    for (const { metadata, status } of pods.all()) {
      const uid = metadata?.uid ?? "";
      shown.add(uid);
      if (status?.phase !== "Running") continue;
      const figures = this.#pod(uid, at);
      if (figures !== undefined) measured[uid] = figures;
      if ((this.#closely.get(uid) ?? 0) > at) this.#containersOf(uid, at, status.containerStatuses ?? []);
    }
    this.#forget(shown, at);
    const pulls = await shownPulls(this.#ports, signal);
    const node = this.#nodeRow(at);
    this.#node.push(node);
    this.#latest = { node, pods: measured, pulls };
    return this.#latest;
  }

  #pod(uid: string, at: number): readonly [Figure, Figure] | undefined {
    const path = this.#pathOf(uid);
    if (path === undefined) return undefined;
    const { cpuNanoseconds, workingSetBytes } = this.#ports.cgroups.glance(path);
    const cores = this.#rates.of(uid, at, cpuNanoseconds && cpuNanoseconds / nanosecondsPerSecond);
    const figures = [rounded(figureOf(cores)), figureOf(workingSetBytes)] as const;
    this.#seriesOf(this.#pods, uid, 3).push([this.#ports.clock.now(), ...figures]);
    return figures;
  }

  #containersOf(
    uid: string,
    at: number,
    statuses: readonly { readonly name: string; readonly containerID?: string | undefined }[],
  ): void {
    const path = this.#pathOf(uid);
    if (path === undefined || this.#paths === undefined) return;
    const below = this.#paths.below(path);
    for (const { name, containerID } of statuses) {
      const own = containerID === undefined ? undefined : below(containerID.replace(/^.*:\/\//, ""));
      if (own === undefined) continue;
      const key = containerKey(uid, name);
      const { cpuNanoseconds, workingSetBytes } = this.#ports.cgroups.glance(own);
      const { throttling } = this.#ports.cgroups.details(own);
      const periods = this.#rates.of(`${key}/periods`, at, throttling?.periods);
      const throttled = this.#rates.of(`${key}/throttled`, at, throttling?.throttledPeriods);
      this.#seriesOf(this.#containers, key, 4).push([
        this.#ports.clock.now(),
        figureOf(this.#rates.of(key, at, cpuNanoseconds && cpuNanoseconds / nanosecondsPerSecond)),
        figureOf(workingSetBytes),
        periods === undefined || periods === 0 ? 0 : (throttled ?? 0) / periods,
      ]);
    }
  }

  #nodeRow(at: number): readonly Figure[] {
    const { clock, cgroups } = this.#ports;
    const { cpu, memory } = cgroups.usage("/");
    const pressures = cgroups.pressures("/");
    const disks = readDisksTotal();
    const interfaces = readNetworkOf(firstProcess);
    const sum = (of: "rxBytes" | "txBytes"): number => interfaces.reduce((total, each) => total + each[of], 0);
    return [
      clock.now(),
      this.#rates.of("node/cpu", at, cpu && cpu.usageNanoseconds / nanosecondsPerSecond),
      memory?.workingSetBytes,
      pressures?.cpu?.some.avg10,
      pressures?.memory?.some.avg10,
      pressures?.io?.some.avg10,
      this.#rates.of("node/read", at, disks.readBytes),
      this.#rates.of("node/written", at, disks.writtenBytes),
      this.#rates.of("node/received", at, sum("rxBytes")),
      this.#rates.of("node/sent", at, sum("txBytes")),
      this.#disk?.usedBytes,
      readTaskCount(),
    ].map((value) => rounded(figureOf(value)));
  }

  /** The disk may hang: it is asked seldom, once at a time, and what else there is to see does not wait for it. */
  async #lookAtDisk(at: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    if (this.#disk !== undefined && at - this.#disk.at < diskEveryMs) return;
    this.#asked ??= this.#askDisk(at).finally(() => {
      this.#asked = undefined;
    });
    const asked = this.#asked;
    const late = (): Error => new Error("the disk does not answer");
    await withDeadline(clock, diskWithinMs, late, signal, (bounded) => unlessAborted(asked, bounded)).catch(() => {});
  }

  async #askDisk(at: number): Promise<void> {
    const disk = await this.#ports.disk().catch(() => undefined);
    this.#disk = { at, usedBytes: disk && Number(disk.usedBytes), capacityBytes: disk && Number(disk.capacityBytes) };
  }

  #pathOf(uid: string): string | undefined {
    const naming = this.#ports.naming();
    if (naming === undefined) return undefined;
    this.#paths ??= new CgroupPaths(this.#ports.cgroups, naming);
    return this.#paths.podPath(uid as PodUid);
  }

  #seriesOf(all: Map<string, Series>, key: string, width: number): Series {
    let series = all.get(key);
    if (series === undefined) {
      series = new Series(width);
      all.set(key, series);
    }
    return series;
  }

  #forget(shown: ReadonlySet<string>, at: number): void {
    const isShown = (key: string): boolean => key.startsWith("node/") || shown.has(key.split("/")[0] ?? "");
    for (const all of [this.#pods, this.#containers]) for (const key of all.keys()) if (!isShown(key)) all.delete(key);
    for (const [uid, until] of this.#closely) if (until < at) this.#closely.delete(uid);
    this.#rates.forgetAllBut(isShown);
    this.#paths?.forgetAllBut(shown as ReadonlySet<PodUid>);
  }
}

async function shownPulls(ports: SamplerPorts, signal: AbortSignal): Promise<SampleView["pulls"]> {
  const pulls: Record<string, readonly [number, number]> = {};
  for (const { podUids, progress } of await lookAtPulls(ports, signal)) {
    if (progress !== undefined) for (const uid of podUids) pulls[uid] ??= [progress.bytes, progress.totalBytes];
  }
  return pulls;
}

function containerKey(uid: string, container: string): string {
  return `${uid}/${container}`;
}

/** Nobody sees more than four digits, and all of them go over the wire. */
function rounded(value: Figure): Figure {
  if (value === null) return null;
  return Math.abs(value) >= 10_000 ? Math.round(value) : Number(value.toPrecision(4));
}
