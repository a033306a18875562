import type { ImagePuller, ImageRequest } from "./image-puller.ts";
import type { PulledImage } from "./pull-attempts.ts";

/**
 * Begins fetching the image of a container before its turn to start. Who then starts the container takes over what was
 * begun, so that users see one pull with its events, not a pull and an image that is surprisingly there.
 */
export class ImagePrefetch {
  readonly #puller: Pick<ImagePuller, "ensure">;
  readonly #begun = new Map<string, Begun>();

  constructor(puller: Pick<ImagePuller, "ensure">) {
    this.#puller = puller;
  }

  /** Never throws; a failure waits for whoever takes over, or is dropped with the next begin. */
  begin(request: ImageRequest, signal: AbortSignal): void {
    const key = keyOf(request);
    const earlier = this.#begun.get(key);
    if (signal.aborted || earlier?.settled === false) return;
    const begun: Begun = { settled: false, outcome: this.#run(request, signal) };
    this.#begun.set(key, begun);
    void begun.outcome.then(() => {
      begun.settled = true;
      if (signal.aborted && this.#begun.get(key) === begun) this.#begun.delete(key);
    });
  }

  /** As ImagePuller.ensure, continuing what was begun for this container. */
  async ensure(request: ImageRequest, signal: AbortSignal): Promise<PulledImage> {
    const key = keyOf(request);
    const begun = this.#begun.get(key);
    if (begun === undefined) return this.#puller.ensure(request, signal);
    this.#begun.delete(key);
    const outcome = await begun.outcome;
    signal.throwIfAborted();
    if (outcome.type === "had") return outcome.image;
    // What was begun was stopped with another's signal: that says nothing about the image.
    if (outcome.type === "stopped") return this.#puller.ensure(request, signal);
    throw outcome.error;
  }

  forgetPod(podUid: string): void {
    for (const key of this.#begun.keys()) if (key.startsWith(`${podUid}/`)) this.#begun.delete(key);
  }

  async #run(request: ImageRequest, signal: AbortSignal): Promise<Outcome> {
    try {
      return { type: "had", image: await this.#puller.ensure(request, signal) };
    } catch (error) {
      return signal.aborted ? { type: "stopped" } : { type: "failed", error };
    }
  }
}

interface Begun {
  settled: boolean;
  readonly outcome: Promise<Outcome>;
}

type Outcome =
  | { readonly type: "had"; readonly image: PulledImage }
  | { readonly type: "failed"; readonly error: unknown }
  | { readonly type: "stopped" };

function keyOf({ pod, fieldPath, image, pullPolicy }: ImageRequest): string {
  return `${pod.metadata.uid}/${fieldPath ?? ""}/${pullPolicy}/${image}`;
}
