import { statfs } from "node:fs/promises";
import {
  CriError,
  type FilesystemUsage,
  type Image,
  type ImageService,
  type PullImageRequest,
} from "../../../connections/cri/index.ts";
import { messageOf, unlessAborted, withDeadline } from "../../../ground/base/index.ts";
import { fieldsOf, isAbsent, numberIn, objectIn, textIn } from "../engine/index.ts";
import { authHeader, imageMessage, isNamed, pullFailure, pullReference } from "../mapping/images.ts";
import type { ShimContext } from "./context.ts";
import { failure } from "./failures.ts";
import type { ImageCache } from "./image-cache.ts";

/** Images, as Docker keeps them. */
export class Images {
  readonly #context: ShimContext;
  readonly #cache: ImageCache;

  constructor(context: ShimContext, cache: ImageCache) {
    this.#context = context;
    this.#cache = cache;
  }

  async list(reference: string, signal: AbortSignal): Promise<Image[]> {
    try {
      const images = await this.#context.engine.listImages(reference === "" ? undefined : reference, signal);
      // A list does not tell whom an image runs as; by itself it does.
      const whole = images.map((image) => this.#message(image));
      return whole;
    } catch (error) {
      throw failure("listImages", error);
    }
  }

  /** Undefined when there is none of this name or id. */
  async status(
    name: string,
    signal: AbortSignal,
  ): Promise<{ image: Image; labels: Readonly<Record<string, string>> } | undefined> {
    if (name === "") throw new CriError("Unknown", "imageStatus", "image name should not be empty");
    try {
      const image = await this.#context.engine.inspectImage(name, signal);
      return { image: this.#message(image), labels: image.labels };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw failure("imageStatus", error);
    }
  }

  async pull(request: Pick<PullImageRequest, "image" | "auth">, signal: AbortSignal): Promise<string> {
    const name = request.image?.image ?? "";
    if (name === "") throw new CriError("Unknown", "pullImage", "image name should not be empty");
    const { engine, metrics } = this.#context;
    try {
      const reference = { ...pullReference(name), auth: authHeader(request.auth) };
      await metrics.pull(signal, () => this.#follow(reference, signal));
      this.#cache.forget();
      // The id, as every other answer names the image by it: kubelets note by whose login they got it.
      return (await engine.inspectImage(name, signal)).id;
    } catch (error) {
      throw failure("pullImage", error);
    }
  }

  /** By id, every name of the image goes first; Docker would refuse otherwise. */
  async remove(name: string, signal: AbortSignal): Promise<void> {
    if (name === "") throw new CriError("Unknown", "removeImage", "image name should not be empty");
    const { engine } = this.#context;
    try {
      const image = await engine.inspectImage(name, signal);
      const isId = image.id === name || image.id === `sha256:${name}`;
      const names = isId ? [...image.tags, ...image.digests, image.id] : [name];
      for (const one of names) {
        await engine.removeImage(one, signal).catch((error: unknown) => {
          if (!isAbsent(error)) throw error;
        });
      }
    } catch (error) {
      if (!isAbsent(error)) throw failure("removeImage", error);
    } finally {
      this.#cache.forget();
    }
  }

  async fsInfo(signal: AbortSignal): ReturnType<ImageService["imageFsInfo"]> {
    const { engine, facts } = this.#context;
    try {
      const { rootDir } = await facts.info(signal);
      const usedBytes = (await engine.layersSize(signal)) ?? (await this.#sumOfSizes(signal));
      const usage = await this.#usage(rootDir, usedBytes);
      return { imageFilesystems: [usage], containerFilesystems: [usage] };
    } catch (error) {
      throw failure("imageFsInfo", error);
    }
  }

  #message(image: Parameters<typeof imageMessage>[0]): Image {
    return imageMessage(image, isNamed(image, this.#context.settings.sandboxImage));
  }

  /** Layers that images share count for each of them; older Dockers tell no better without walking their disk. */
  async #sumOfSizes(signal: AbortSignal): Promise<number> {
    const images = await this.#context.engine.listImages(undefined, signal);
    return images.reduce((sum, { size }) => sum + size, 0);
  }

  async #usage(mountpoint: string, usedBytes: number): Promise<FilesystemUsage> {
    const { files, ffree } = await statfs(mountpoint, { bigint: true });
    return {
      timestamp: this.#context.stamp(),
      fsId: { mountpoint },
      usedBytes: { value: BigInt(Math.trunc(usedBytes)) },
      inodesUsed: { value: files - ffree },
    };
  }

  /** Reads the progress to its end. A pull of which nothing is heard for long is given up, unless layers are unpacked. */
  async #follow(
    reference: { readonly repository: string; readonly tag: string; readonly auth: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { engine, clock, settings } = this.#context;
    const silence = new Error("no progress of the pull");
    let lastWords = "";
    let mayBeSilent = false;
    const pulling = new AbortController();
    try {
      // A registry that takes the call and never answers keeps Docker from saying anything at all.
      const progress = await withDeadline(
        clock,
        settings.pullProgressDeadlineMs,
        () => silence,
        signal,
        (bounded) => unlessAborted(engine.pullImage(reference, pulling.signal), bounded),
      );
      const lines = progress[Symbol.asyncIterator]();
      for (;;) {
        const patience = mayBeSilent ? settings.pullProgressDeadlineMs * 20 : settings.pullProgressDeadlineMs;
        const { done, value } = await withDeadline(
          clock,
          patience,
          () => silence,
          signal,
          (bounded) => nextLine(lines, bounded),
        );
        if (done) return;
        const line = parseProgress(value);
        if (line.failure !== undefined) throw new CriError("Unknown", "pullImage", line.failure);
        mayBeSilent ||= line.status === "Extracting";
        lastWords = line.status;
      }
    } catch (error) {
      if (error !== silence) throw error;
      const seconds = settings.pullProgressDeadlineMs / 1000;
      throw new CriError(
        "Unknown",
        "pullImage",
        `no progress of the pull for ${seconds} s, last it said: "${lastWords}"`,
      );
    } finally {
      pulling.abort();
    }
  }
}

async function nextLine(lines: AsyncIterator<string>, signal: AbortSignal): Promise<IteratorResult<string>> {
  return await unlessAborted(lines.next(), signal);
}

function parseProgress(line: string): { status: string; failure: string | undefined } {
  try {
    const fields = fieldsOf(JSON.parse(line));
    const detail = objectIn(fields, "errorDetail");
    const failed = pullFailure({
      error: textIn(fields, "error"),
      errorDetail: { code: numberIn(detail, "code"), message: textIn(detail, "message") },
    });
    return { status: textIn(fields, "status"), failure: failed };
  } catch (error) {
    return { status: "", failure: `docker answered with what is no JSON: ${messageOf(error)}` };
  }
}
