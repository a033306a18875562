import { SharedWork } from "../../ground/base/index.ts";
import type { ImagePuller, ImageRequest } from "./image-puller.ts";
import type { PulledImage } from "./pull-attempts.ts";

/**
 * Begins fetching the image of a container before its turn to start. Who then starts the container takes over what was
 * begun, so that users see one pull with its events, not a pull and an image that is surprisingly there.
 */
export class ImagePrefetch {
  readonly #puller: Pick<ImagePuller, "ensure">;
  readonly #running = new SharedWork<string, PulledImage>();
  readonly #begun = new Map<string, Begun>();

  constructor(puller: Pick<ImagePuller, "ensure">) {
    this.#puller = puller;
  }

  /** Never throws; a failure waits for whoever takes over, or is dropped with the next begin. */
  begin(request: ImageRequest, signal: AbortSignal): void {
    const key = keyOf(request);
    if (signal.aborted || this.#begun.get(key)?.state === "running") return;
    const begun: Begun = { state: "running", isTaken: false };
    this.#begun.set(key, begun);
    void this.#follow(key, begun, request, signal);
  }

  /** As ImagePuller.ensure, continuing what was begun for this container. */
  async ensure(request: ImageRequest, signal: AbortSignal): Promise<PulledImage> {
    const key = keyOf(request);
    const begun = this.#begun.get(key);
    switch (begun?.state) {
      case undefined:
        return this.#puller.ensure(request, signal);
      case "running":
        begun.isTaken = true;
        return this.#join(request, signal);
      case "had":
        this.#begun.delete(key);
        return begun.image;
      case "failed":
        this.#begun.delete(key);
        throw begun.error;
    }
  }

  forgetPod(podUid: string): void {
    for (const [key, { state }] of this.#begun) {
      if (state !== "running" && key.startsWith(`${podUid}/`)) this.#begun.delete(key);
    }
  }

  async #follow(key: string, begun: Running, request: ImageRequest, signal: AbortSignal): Promise<void> {
    let ended: Begun | undefined;
    try {
      ended = { state: "had", image: await this.#join(request, signal) };
    } catch (error) {
      // What was stopped says nothing about the image.
      if (!signal.aborted) ended = { state: "failed", error };
    }
    if (ended === undefined || begun.isTaken) this.#begun.delete(key);
    else this.#begun.set(key, ended);
  }

  #join(request: ImageRequest, signal: AbortSignal): Promise<PulledImage> {
    return this.#running.join(keyOf(request), (shared) => this.#puller.ensure(request, shared), signal);
  }
}

type Begun =
  | Running
  | { readonly state: "had"; readonly image: PulledImage }
  | { readonly state: "failed"; readonly error: unknown };

interface Running {
  readonly state: "running";
  isTaken: boolean;
}

function keyOf({ pod, fieldPath, image, pullPolicy }: ImageRequest): string {
  return `${pod.metadata.uid}/${fieldPath ?? ""}/${pullPolicy}/${image}`;
}
