import type { ImageService } from "../../../connections/cri/index.ts";
import type { FileSystemUsage } from "../../../connections/host/index.ts";
import { type Clock, type Logger, messageOf, never, withDeadline } from "../../../ground/base/index.ts";
import type { DiskLayout } from "../plan/signals.ts";
import type { PressureSources } from "./ports.ts";

export interface DiskReading {
  readonly layout: DiskLayout;
  readonly nodefs: FileSystemUsage;
  readonly imagefs: FileSystemUsage;
  readonly containerfs: FileSystemUsage;
}

interface DiskPlaces {
  readonly layout: DiskLayout;
  readonly images: string;
  readonly containers: string;
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

/** How full the node's disks are. A disk or a runtime that does not answer holds up nobody. */
export class DiskSignals {
  readonly #ports: DiskSignalPorts;
  /** Where the runtime has its images does not change while the agent runs. */
  #places: DiskPlaces | undefined;
  #askAgainAt = 0;
  #last: { readonly at: number; readonly reading: DiskReading } | undefined;
  #isUnderWay = false;

  constructor(ports: DiskSignalPorts) {
    this.#ports = ports;
  }

  /** The latest figures; undefined while there are none, or none that are any good. */
  async read(signal: AbortSignal): Promise<DiskReading | undefined> {
    const { clock } = this.#ports;
    // One that was late once is not waited for again: whoever reads wants to know about memory, too.
    if (!this.#isUnderWay) await this.#takeInTime();
    signal.throwIfAborted();
    const last = this.#last;
    return last === undefined || clock.monotonic() - last.at > oldestMs ? undefined : last.reading;
  }

  async #takeInTime(): Promise<void> {
    const enough = new AbortController();
    this.#isUnderWay = true;
    // Whatever becomes of one that is late, it has said so itself.
    void this.#take().finally(() => {
      this.#isUnderWay = false;
      enough.abort();
    });
    await this.#ports.clock.sleep(patienceMs, enough.signal).catch(() => {});
  }

  async #take(): Promise<void> {
    const { clock, log, sources, rootDir } = this.#ports;
    try {
      const places = this.#places ?? (await this.#find());
      if (places === undefined) return;
      const { layout, images, containers } = places;
      const nodefs = await sources.fileSystem(rootDir);
      const imagefs = layout === "one disk for all" ? nodefs : await sources.fileSystem(images);
      const containerfs = layout === "containers apart" ? await sources.fileSystem(containers) : imagefs;
      this.#last = { at: clock.monotonic(), reading: { layout, nodefs, imagefs, containerfs } };
    } catch (error) {
      log.warn("Could not read how full the node's disks are", { err: messageOf(error) });
    }
  }

  async #find(): Promise<DiskPlaces | undefined> {
    const { clock, images, sources, rootDir } = this.#ports;
    if (clock.monotonic() < this.#askAgainAt) return undefined;
    this.#askAgainAt = clock.monotonic() + askAgainMs;
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
    this.#places = { layout, images: imagePath, containers: containerPath };
    return this.#places;
  }
}
