import type { Image, ImageService } from "../../connections/cri/index.ts";
import { type Clock, SharedWork } from "../../ground/base/index.ts";
import type { ContainerImage } from "../../ground/model/index.ts";

const mostNames = 5;
const cacheMs = 30_000;

/** The images for the node's status: the largest first, at most `maxImages` of them (-1: all). */
export function nodeStatusImages(images: readonly Image[], maxImages: number): readonly ContainerImage[] {
  const ordered = [...images].sort((a, b) => Number(b.size - a.size) || (a.id < b.id ? 1 : -1));
  return (maxImages < 0 ? ordered : ordered.slice(0, maxImages)).map(({ repoDigests, repoTags, size }) => ({
    names: [...repoDigests, ...repoTags].slice(0, mostNames),
    sizeBytes: Number(size),
  }));
}

/** The runtime's list of images, asked for at most every 30 s however often it is read. */
export class ImageList {
  readonly #images: Pick<ImageService, "listImages">;
  readonly #clock: Clock;
  readonly #asking = new SharedWork<"list", readonly Image[]>();
  #cached: { readonly images: readonly Image[]; readonly readAt: number } | undefined;

  constructor(images: Pick<ImageService, "listImages">, clock: Clock) {
    this.#images = images;
    this.#clock = clock;
  }

  async get(signal: AbortSignal): Promise<readonly Image[]> {
    if (this.#cached !== undefined && this.#clock.monotonic() - this.#cached.readAt < cacheMs) {
      return this.#cached.images;
    }
    return this.#asking.join("list", (shared) => this.#ask(shared), signal);
  }

  async #ask(signal: AbortSignal): Promise<readonly Image[]> {
    const { images } = await this.#images.listImages({ filter: undefined }, { signal });
    this.#cached = { images, readAt: this.#clock.monotonic() };
    return images;
  }
}
