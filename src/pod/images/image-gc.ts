import type { Image, ImageService } from "../../connections/cri/index.ts";
import { type Clock, isAbort, Limiter, type Logger, messageOf } from "../../ground/base/index.ts";
import { canonicalName, type RecordNodeEvent } from "../../ground/model/index.ts";
import type { ImageAge, ImageAgeStore } from "./image-ages.ts";
import type { ImageFs } from "./image-fs.ts";

export interface ImageGcSettings {
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minimumAgeMs: number;
  /** Unused images older than this go whatever the space; 0: never. */
  readonly maximumAgeMs: number;
}

export interface ImageGcPorts {
  readonly images: Pick<ImageService, "listImages" | "removeImage">;
  readonly readFs: (signal: AbortSignal) => Promise<Pick<ImageFs, "capacityBytes" | "availableBytes">>;
  /** Image ids and references of every container the runtime knows, running or not, each with one that uses it. */
  readonly imagesInUse: (signal: AbortSignal) => Promise<ReadonlyMap<string, string>>;
  /** Names that stay although nothing uses them: the sandbox image, where the runtime does not pin it. */
  readonly keptImages: () => readonly string[];
  readonly ages: ImageAgeStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly onRemoved: (removal: { readonly reason: "age" | "space"; readonly sizeBytes: bigint }) => void;
  /** Told which images are left after a collection that began at `before`. */
  readonly onCollected: (imageIds: ReadonlySet<string>, before: number) => Promise<void>;
}

const checkEveryMs = 5 * 60_000;
/** Between an image being ensured and its container existing, nothing else shows that it is wanted. */
const wantedMs = 2 * 60_000;

/** Removes images that no container uses: the old ones, and under disk pressure the longest unused first. */
export class ImageGc {
  #settings: ImageGcSettings;
  readonly #ports: ImageGcPorts;
  readonly #wanted = new Map<string, number>();
  readonly #turn = new Limiter(1);
  #ages: Map<string, ImageAge> | undefined;
  #nextCheckAt: number;
  #failuresInARow = 0;

  constructor(settings: ImageGcSettings, ports: ImageGcPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#nextCheckAt = ports.clock.monotonic();
  }

  /** Other limits count from the next collection on. */
  configure(settings: ImageGcSettings): void {
    this.#settings = settings;
  }

  /** When to call `collect` next, on the scale of the clock that is never set. */
  get nextCheckAt(): number {
    return this.#nextCheckAt;
  }

  /** A container is about to be made from this image. */
  noteWanted(imageId: string): void {
    this.#wanted.set(imageId, this.#ports.clock.monotonic());
  }

  /** The periodic round. Failures end as log lines and events. */
  async collect(signal: AbortSignal): Promise<void> {
    const { clock, log, recordNodeEvent } = this.#ports;
    this.#nextCheckAt = clock.monotonic() + checkEveryMs;
    try {
      await this.#turn.run(() => this.#round(signal), signal);
      this.#failuresInARow = 0;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#failuresInARow++;
      log.error("Image garbage collection failed", error, { failuresInARow: this.#failuresInARow });
      // The first failure after a start is usual: the runtime has no figures yet.
      if (this.#failuresInARow > 1) {
        recordNodeEvent({ type: "Warning", reason: "ImageGCFailed", message: messageOf(error) });
      }
    }
  }

  /** For eviction: removes everything that may go, whatever the thresholds, and returns the bytes freed. */
  async deleteUnused(signal: AbortSignal): Promise<bigint> {
    return await this.#turn.run(async () => {
      const startedAt = this.#ports.clock.now();
      const candidates = await this.#detect(startedAt, signal);
      try {
        return await this.#free(undefined, candidates, startedAt, signal);
      } finally {
        await this.#reportLeft(startedAt);
      }
    }, signal);
  }

  async #round(signal: AbortSignal): Promise<void> {
    const startedAt = this.#ports.clock.now();
    const candidates = await this.#detect(startedAt, signal);
    const { highThresholdPercent, maximumAgeMs } = this.#settings;
    if (highThresholdPercent === 100 && maximumAgeMs === 0) return;
    try {
      await this.#reachThreshold(await this.#removeOld(candidates, startedAt, signal), startedAt, signal);
    } finally {
      await this.#reportLeft(startedAt);
    }
  }

  async #reachThreshold(candidates: readonly Candidate[], startedAt: number, signal: AbortSignal): Promise<void> {
    const { readFs, recordNodeEvent, log } = this.#ports;
    const { capacityBytes, availableBytes } = await readFs(signal);
    if (capacityBytes <= 0n) {
      const message = "invalid capacity 0 on image filesystem";
      recordNodeEvent({ type: "Warning", reason: "InvalidDiskCapacity", message });
      throw new Error(message);
    }
    const { highThresholdPercent, lowThresholdPercent } = this.#settings;
    const { usedPercent, wantedBytes } = spaceWanted({ capacityBytes, availableBytes }, this.#settings);
    if (wantedBytes === undefined) return;
    log.info(
      "Disk usage on image filesystem is over the high threshold, trying to free bytes down to the low threshold",
      {
        usage: usedPercent,
        highThreshold: highThresholdPercent,
        amountToFree: String(wantedBytes),
        lowThreshold: lowThresholdPercent,
      },
    );
    const freed = await this.#free(wantedBytes, candidates, startedAt, signal);
    if (freed >= wantedBytes) return;
    const message =
      `Failed to garbage collect required amount of images. Attempted to free ${wantedBytes} bytes, ` +
      `but only found ${freed} bytes eligible to free.`;
    recordNodeEvent({ type: "Warning", reason: "FreeDiskSpaceFailed", message });
    throw new Error(message);
  }

  /** What a collection would do now; `everything`: one for an eviction. Nothing is removed, and nothing remembered. */
  async foresee(request: "usual" | "everything", signal: AbortSignal): Promise<ImageForecast> {
    const { clock, readFs } = this.#ports;
    const now = clock.now();
    const { candidates, kept } = await this.#judge(now, signal);
    const { maximumAgeMs } = this.#settings;
    const { wantedBytes } = spaceWanted(await readFs(signal), this.#settings);
    const goes: ForeseenImage[] = [];
    const stays: (ForeseenImage & { readonly because: string })[] = kept.map(({ image, age, because }) => ({
      ...shownImage(image, age),
      because,
    }));
    let freed = 0n;
    for (const candidate of candidates) {
      const shown = shownImage(candidate.image, candidate.age);
      const isOld = maximumAgeMs > 0 && isOlderThan(candidate.age, maximumAgeMs, now);
      const isWanted = request === "everything" || (wantedBytes !== undefined && freed < wantedBytes);
      const isReady = mayGo(candidate.age, now, this.#settings);
      if (isOld || (isWanted && isReady)) {
        goes.push(shown);
        freed += candidate.image.size;
      } else stays.push({ ...shown, because: isWanted ? "it is too new" : "there is enough room" });
    }
    return { goes, stays, freedBytes: freed, wantedBytes: wantedBytes ?? 0n };
  }

  /** Updates the ages of all images and returns those nobody uses, the longest unused first. */
  async #detect(now: number, signal: AbortSignal): Promise<readonly Candidate[]> {
    const { ages, candidates } = await this.#judge(now, signal);
    this.#ages = ages;
    await this.#ports.ages.save(ages, now);
    return candidates;
  }

  async #judge(now: number, signal: AbortSignal): Promise<Judgement> {
    const { images, imagesInUse, keptImages, ages: store } = this.#ports;
    // Containers first: an image that appears in between is then seen as new, never as unused and old.
    const inUse = await imagesInUse(signal);
    const listed = (await images.listImages({ filter: undefined }, { signal })).images;
    const known = this.#ages ?? (await store.load(now));
    this.#forgetWanted();
    const kept = new Set(keptImages().map(canonicalName));
    const ages = new Map<string, ImageAge>();
    const candidates: Candidate[] = [];
    const staying: Judgement["kept"][number][] = [];
    for (const image of listed) {
      const key = keyOf(image);
      const user = userOf(image, inUse) ?? (this.#wanted.has(image.id) ? "a container that is being made" : undefined);
      const used = user !== undefined;
      const { firstDetected, lastUsed } = known.get(key) ?? { firstDetected: now, lastUsed: 0 };
      // What was seen at a time yet to come was seen before the clock was set back.
      const age = { firstDetected: Math.min(firstDetected, now), lastUsed: used ? now : Math.min(lastUsed, now) };
      ages.set(key, age);
      const because = used
        ? `${user} uses it`
        : image.pinned
          ? "the runtime keeps it"
          : isAmong(image, kept)
            ? "sandboxes or volumes need it"
            : undefined;
      if (because === undefined) candidates.push({ key, image, age });
      else staying.push({ image, age, because });
    }
    candidates.sort((a, b) => a.age.lastUsed - b.age.lastUsed || a.age.firstDetected - b.age.firstDetected);
    return { ages, candidates, kept: staying };
  }

  async #removeOld(
    candidates: readonly Candidate[],
    startedAt: number,
    signal: AbortSignal,
  ): Promise<readonly Candidate[]> {
    const { maximumAgeMs } = this.#settings;
    if (maximumAgeMs === 0) return candidates;
    const left: Candidate[] = [];
    for (const candidate of candidates) {
      const isOld = isOlderThan(candidate.age, maximumAgeMs, startedAt);
      if (!isOld || !(await this.#remove(candidate, "age", signal))) left.push(candidate);
    }
    return left;
  }

  /** Removes candidates until `wantedBytes` are freed, all of them when undefined. */
  async #free(
    wantedBytes: bigint | undefined,
    candidates: readonly Candidate[],
    startedAt: number,
    signal: AbortSignal,
  ): Promise<bigint> {
    let freed = 0n;
    for (const candidate of candidates) {
      if (wantedBytes !== undefined && freed >= wantedBytes) break;
      if (!mayGo(candidate.age, startedAt, this.#settings)) continue;
      if (await this.#remove(candidate, "space", signal)) freed += candidate.image.size;
    }
    return freed;
  }

  async #remove({ key, image }: Candidate, reason: "age" | "space", signal: AbortSignal): Promise<boolean> {
    const { images, log, onRemoved } = this.#ports;
    // Wanted since the round began: its container may be in the making.
    if (this.#wanted.has(image.id)) return false;
    const runtimeHandler = image.spec?.runtimeHandler ?? "";
    const spec = { image: image.id, annotations: {}, userSpecifiedImage: "", runtimeHandler };
    log.info("Removing image to free bytes", { imageID: image.id, size: String(image.size), reason });
    try {
      await images.removeImage({ image: spec }, { signal });
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.error("Cannot remove image", error, { imageID: image.id });
      return false;
    }
    this.#ages?.delete(key);
    onRemoved({ reason, sizeBytes: image.size });
    return true;
  }

  async #reportLeft(startedAt: number): Promise<void> {
    const ids = [...(this.#ages?.keys() ?? [])].map((key) => key.split(",", 1)[0] ?? key);
    await this.#ports.onCollected(new Set(ids), startedAt);
  }

  #forgetWanted(): void {
    const now = this.#ports.clock.monotonic();
    for (const [id, since] of this.#wanted) if (now - since > wantedMs) this.#wanted.delete(id);
  }
}

interface Candidate {
  readonly key: string;
  readonly image: Image;
  readonly age: ImageAge;
}

interface Judgement {
  readonly ages: Map<string, ImageAge>;
  /** Nobody uses them; the longest unused first. */
  readonly candidates: readonly Candidate[];
  readonly kept: readonly { readonly image: Image; readonly age: ImageAge; readonly because: string }[];
}

export interface ForeseenImage {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: bigint;
  /** Milliseconds since 1970; 0: never since the agent knows it. */
  readonly lastUsed: number;
  readonly firstSeen: number;
}

export interface ImageForecast {
  readonly goes: readonly ForeseenImage[];
  readonly stays: readonly (ForeseenImage & { readonly because: string })[];
  readonly freedBytes: bigint;
  readonly wantedBytes: bigint;
}

function shownImage({ id, repoTags, repoDigests, size }: Image, { firstDetected, lastUsed }: ImageAge): ForeseenImage {
  const names = repoTags.length > 0 ? repoTags : repoDigests;
  return { id, names, sizeBytes: size, lastUsed, firstSeen: firstDetected };
}

/** How full the disk is, and how much has to go; undefined: nothing. */
function spaceWanted(
  { capacityBytes, availableBytes }: Pick<ImageFs, "capacityBytes" | "availableBytes">,
  { highThresholdPercent, lowThresholdPercent }: ImageGcSettings,
): { readonly usedPercent: number; readonly wantedBytes: bigint | undefined } {
  const usedPercent = capacityBytes <= 0n ? 0 : 100 - Number((availableBytes * 100n) / capacityBytes);
  if (usedPercent < highThresholdPercent) return { usedPercent, wantedBytes: undefined };
  return { usedPercent, wantedBytes: (capacityBytes * BigInt(100 - lowThresholdPercent)) / 100n - availableBytes };
}

function isOlderThan({ firstDetected, lastUsed }: ImageAge, ageMs: number, now: number): boolean {
  return now - Math.max(firstDetected, lastUsed) > ageMs;
}

/** Whether nobody can be about to use it. */
function mayGo({ firstDetected, lastUsed }: ImageAge, startedAt: number, { minimumAgeMs }: ImageGcSettings): boolean {
  return lastUsed < startedAt && startedAt - firstDetected >= minimumAgeMs;
}

/** Runtimes that keep images per handler list one id several times. */
function keyOf({ id, spec }: Image): string {
  const handler = spec?.runtimeHandler ?? "";
  return handler === "" ? id : `${id},${handler}`;
}

function userOf({ id, repoTags, repoDigests }: Image, users: ReadonlyMap<string, string>): string | undefined {
  const name = [id, ...repoTags, ...repoDigests].find((each) => users.has(each));
  return name === undefined ? undefined : users.get(name);
}

function isAmong({ id, repoTags, repoDigests }: Image, names: ReadonlySet<string>): boolean {
  return [id, ...repoTags, ...repoDigests].some((name) => names.has(name));
}
