import type { ImageService } from "../../../connections/cri/index.ts";
import type { FileSystemUsage } from "../../../connections/host/index.ts";
import { aFewAtOnce, type Clock, type Logger, mapAtMost, never, withDeadline } from "../../../ground/base/index.ts";
import type { DiskLayout } from "../plan/signals.ts";
import { Latest } from "./latest.ts";
import type { PressureSources } from "./ports.ts";

/** How full a disk was, and when. */
export interface DiskUsage extends FileSystemUsage {
  readonly readAt: number;
}

/** A disk that has not answered for long is undefined. */
export interface DiskReading {
  readonly layout: DiskLayout;
  readonly nodefs: DiskUsage | undefined;
  readonly imagefs: DiskUsage | undefined;
  readonly containerfs: DiskUsage | undefined;
}

/** Which directory says how full each of them is. */
interface DiskPlaces {
  readonly layout: DiskLayout;
  readonly nodefs: string;
  readonly imagefs: string;
  readonly containerfs: string;
}

export interface DiskSignalPorts {
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly sources: Pick<PressureSources, "fileSystem" | "device">;
  readonly rootDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A disk that takes longer to answer is not waited for: others need the node's attention too. */
const patienceMs = 500;
const oldestMs = 60_000;
const askRuntimeMs = 10_000;
const askAgainMs = 10_000;

/** How full the node's disks are. A disk or a runtime that does not answer holds up nobody, and hides no other disk. */
export class DiskSignals {
  readonly #ports: DiskSignalPorts;
  /** Where the runtime has its images does not change while the agent runs. */
  readonly #places: Latest<DiskPlaces>;
  readonly #disks = new Map<string, Latest<FileSystemUsage>>();
  #askAgainAt = 0;

  constructor(ports: DiskSignalPorts) {
    this.#ports = ports;
    this.#places = new Latest("the runtime's images", () => this.#find(), ports);
  }

  /** The latest figures; undefined while there are none, or none that are any good. */
  async read(signal: AbortSignal): Promise<DiskReading | undefined> {
    const { clock } = this.#ports;
    const enough = new AbortController();
    void this.#refresh().finally(() => enough.abort());
    await clock.sleep(patienceMs, enough.signal).catch(() => {});
    signal.throwIfAborted();
    for (const asked of [this.#places, ...this.#disks.values()]) asked.noteLate();
    return this.#reading();
  }

  #reading(): DiskReading | undefined {
    const places = this.#places.answer(Number.POSITIVE_INFINITY);
    if (places === undefined) return undefined;
    const of = (path: string): DiskUsage | undefined => {
      const last = this.#disk(path).dated(oldestMs);
      return last && { ...last.answer, readAt: last.askedAt };
    };
    const { layout } = places;
    const [nodefs, imagefs, containerfs] = [of(places.nodefs), of(places.imagefs), of(places.containerfs)];
    const isKnown = nodefs !== undefined || imagefs !== undefined || containerfs !== undefined;
    return isKnown ? { layout, nodefs, imagefs, containerfs } : undefined;
  }

  /** Whoever was late once is not waited for again: those who read want to know about memory, too. */
  async #refresh(): Promise<void> {
    const { clock } = this.#ports;
    if (this.#places.answer(Number.POSITIVE_INFINITY) === undefined && clock.monotonic() >= this.#askAgainAt) {
      this.#askAgainAt = clock.monotonic() + askAgainMs;
      await this.#places.refresh();
    }
    const places = this.#places.answer(Number.POSITIVE_INFINITY);
    if (places === undefined) return;
    const paths = new Set([places.nodefs, places.imagefs, places.containerfs]);
    await mapAtMost(aFewAtOnce, [...paths], (path) => this.#disk(path).refresh());
  }

  #disk(path: string): Latest<FileSystemUsage> {
    const { sources } = this.#ports;
    const disk = this.#disks.get(path) ?? new Latest(path, () => sources.fileSystem(path), this.#ports);
    this.#disks.set(path, disk);
    return disk;
  }

  async #find(): Promise<DiskPlaces> {
    const { clock, images, sources, rootDir } = this.#ports;
    const late = (): Error => new Error(`the runtime did not say within ${askRuntimeMs / 1000} s where its images are`);
    const info = await withDeadline(clock, askRuntimeMs, late, never, (signal) => images.imageFsInfo({}, { signal }));
    const imagePath = info.imageFilesystems[0]?.fsId?.mountpoint;
    if (imagePath === undefined) throw new Error("imageFs information is unavailable");
    const containerPath = info.containerFilesystems[0]?.fsId?.mountpoint ?? imagePath;
    const [node, image, container] = await Promise.all([
      sources.device(rootDir),
      sources.device(imagePath),
      sources.device(containerPath),
    ]);
    const layout = image !== container ? "containers apart" : image !== node ? "images apart" : "one disk for all";
    const imagefs = layout === "one disk for all" ? rootDir : imagePath;
    const containerfs = layout === "containers apart" ? containerPath : imagefs;
    return { layout, nodefs: rootDir, imagefs, containerfs };
  }
}
