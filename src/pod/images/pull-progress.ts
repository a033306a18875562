import { criCodeOf, type ImageContent, type Ingest, type ManifestLayers } from "../../connections/cri/index.ts";
import { type Clock, mapAtMost, never, unlessAborted } from "../../ground/base/index.ts";
import { parseImage } from "../../ground/model/index.ts";
import type { PullInProgress } from "./pull-queue.ts";

/** How far a pull is. */
export interface PullProgress {
  readonly bytes: number;
  readonly totalBytes: number;
  readonly layers: { readonly done: number; readonly total: number };
}

/** A pull under way or waiting for its turn; without progress where nobody knows it. */
export interface PullView extends PullInProgress {
  readonly progress?: PullProgress;
}

export interface PullProgressPorts {
  readonly list: () => readonly PullInProgress[];
  /** undefined: the runtime can't tell. */
  readonly content: () => ImageContent | undefined;
  readonly clock: Clock;
}

/** However many look, the runtime is asked this often. */
const freshMs = 1000;

interface Reading {
  readonly at: number;
  readonly views: Promise<readonly PullView[]>;
  isOver: boolean;
}

/**
 * How far pulls are, asked of the runtime when somebody looks and never by itself. The runtime says which blobs are on
 * their way; which of them belong to a pull is told by the manifest that came first.
 */
export class PullProgressReader {
  readonly #ports: PullProgressPorts;
  #canTell = true;
  /** By image, while it is being pulled: what it consists of. */
  readonly #known = new Map<string, readonly ManifestLayers[]>();
  #last: Reading | undefined;

  constructor(ports: PullProgressPorts) {
    this.#ports = ports;
  }

  /** Never rejects for want of figures: pulls are listed without them then. */
  async look(signal: AbortSignal): Promise<readonly PullView[]> {
    const now = this.#ports.clock.monotonic();
    if (this.#last === undefined || (this.#last.isOver && now - this.#last.at >= freshMs))
      this.#last = this.#begin(now);
    return await unlessAborted(this.#last.views, signal);
  }

  /** Nobody's own: who leaves takes nothing from those who stay. The runtime is asked with bounds in time. */
  #begin(at: number): Reading {
    const views = this.#read(never).finally(() => {
      begun.isOver = true;
    });
    const begun: Reading = { at, views, isOver: false };
    return begun;
  }

  async #read(signal: AbortSignal): Promise<readonly PullView[]> {
    const pulls = this.#ports.list();
    for (const image of this.#known.keys()) {
      if (!pulls.some((pull) => pull.image === image)) this.#known.delete(image);
    }
    const content = this.#canTell ? this.#ports.content() : undefined;
    if (content === undefined || !pulls.some(({ ageMs }) => ageMs !== undefined)) return pulls;
    try {
      const ingests = await content.ingests(signal);
      return await mapAtMost(2, pulls, (pull) => this.#withProgress(pull, ingests, content, signal));
    } catch (error) {
      // Other runtimes speak CRI and nothing else; they are not asked again.
      if (criCodeOf(error) === "Unimplemented") this.#canTell = false;
      return pulls;
    }
  }

  async #withProgress(
    pull: PullInProgress,
    ingests: readonly Ingest[],
    content: ImageContent,
    signal: AbortSignal,
  ): Promise<PullView> {
    if (pull.ageMs === undefined) return pull;
    const manifests = this.#known.get(pull.image) ?? (await this.#find(pull.image, ingests, content, signal));
    const layers = layersOf(manifests);
    if (layers.length === 0) return pull;
    const present = await content.present(
      layers.map(({ digest }) => digest),
      signal,
    );
    return { ...pull, progress: progressOf(layers, ingests, present) };
  }

  /** Found once something of them is on its way; later, while all is being unpacked, nothing is any more. */
  async #find(
    image: string,
    ingests: readonly Ingest[],
    content: ImageContent,
    signal: AbortSignal,
  ): Promise<readonly ManifestLayers[]> {
    const { domain, path } = parseImage(image);
    const found = underWay(await content.manifests(domain, path, signal), ingests);
    const others = [...this.#known].flatMap(([other, manifests]) => (other === image ? [] : manifests));
    const manifests = ownManifests(image, found, others);
    // Several are those of pulls from one repository that began together: told together until one of them is through.
    if (manifests.length === 1) this.#known.set(image, manifests);
    return manifests;
  }
}

/** The manifests that something is being fetched for: a repository may have older images here, of which nothing is. */
export function underWay(manifests: readonly ManifestLayers[], ingests: readonly Ingest[]): readonly ManifestLayers[] {
  const active = new Set(ingests.map(({ digest }) => digest));
  return manifests.filter(({ layers }) => layers.some(({ digest }) => active.has(digest)));
}

/** Of those under way, the image's: the one that it names, else what no other pull is known to fetch. */
export function ownManifests(
  image: string,
  found: readonly ManifestLayers[],
  others: readonly ManifestLayers[],
): readonly ManifestLayers[] {
  const named = found.filter(({ digest }) => image.endsWith(`@${digest}`));
  if (named.length > 0) return named;
  const taken = new Set(others.map(({ digest }) => digest));
  const left = found.filter(({ digest }) => !taken.has(digest));
  // Two tags may be one image.
  return left.length > 0 ? left : found;
}

/** A layer that occurs twice is fetched once. */
function layersOf(manifests: readonly ManifestLayers[]): ManifestLayers["layers"] {
  return [...new Map(manifests.flatMap(({ layers }) => layers).map((layer) => [layer.digest, layer])).values()];
}

export function progressOf(
  layers: ManifestLayers["layers"],
  ingests: readonly Ingest[],
  present: ReadonlySet<string>,
): PullProgress {
  const onTheWay = new Map(ingests.map((ingest) => [ingest.digest, ingest.bytes]));
  const bytesOf = ({ digest, bytes }: ManifestLayers["layers"][number]): number =>
    present.has(digest) ? bytes : Math.min(onTheWay.get(digest) ?? 0, bytes);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
  return {
    bytes: sum(layers.map(bytesOf)),
    totalBytes: sum(layers.map(({ bytes }) => bytes)),
    layers: { done: layers.filter(({ digest }) => present.has(digest)).length, total: layers.length },
  };
}
