import { type Engine, EngineError, type EngineImage } from "../engine/index.ts";

/** Images by their id, as long as Docker tells of no change of any: every status of a container names its image's digest. */
export class ImageCache {
  readonly #engine: Engine;
  readonly #images = new Map<string, EngineImage>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Undefined when there is none of this id, or Docker can't read it: whoever asks wants to know of a container. */
  async get(id: string, signal: AbortSignal): Promise<EngineImage | undefined> {
    const known = this.#images.get(id);
    if (known !== undefined) return known;
    try {
      const image = await this.#engine.inspectImage(id, signal);
      this.#images.set(id, image);
      return image;
    } catch (error) {
      if (error instanceof EngineError) return undefined;
      throw error;
    }
  }

  forget(): void {
    this.#images.clear();
  }
}
