import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { FieldReader, saveFile } from "../../ground/base/index.ts";

/** When the agent first saw an image and last saw a container use it; wall-clock milliseconds, 0: never. */
export interface ImageAge {
  readonly firstDetected: number;
  readonly lastUsed: number;
}

/** Where ages are kept between runs of the agent. */
export interface ImageAgeStore {
  /** What was saved; the time nobody watched counts as use, so that a long stop does not make every image old. */
  load(now: number): Promise<ReadonlyMap<string, ImageAge>>;
  save(ages: ReadonlyMap<string, ImageAge>, now: number): Promise<void>;
}

export class ImageAgeFile implements ImageAgeStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(now: number): Promise<ReadonlyMap<string, ImageAge>> {
    const ages = new Map<string, ImageAge>();
    const file = await this.#read();
    const unwatchedMs = Math.max(now - file.number("savedAt"), 0);
    const images = file.object("images");
    for (const key of images.names()) {
      const entry = images.object(key);
      const lastUsed = entry.number("lastUsed");
      ages.set(key, {
        firstDetected: Math.min(entry.number("firstDetected"), now),
        lastUsed: lastUsed === 0 ? 0 : Math.min(lastUsed + unwatchedMs, now),
      });
    }
    return ages;
  }

  async save(ages: ReadonlyMap<string, ImageAge>, now: number): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o750 });
    await saveFile(this.#path, JSON.stringify({ savedAt: now, images: Object.fromEntries(ages) }), 0o600);
  }

  /** A file that is absent or unreadable means that nothing is known: every image counts as just seen. */
  async #read(): Promise<FieldReader> {
    try {
      return FieldReader.of(JSON.parse(await readFile(this.#path, "utf8")), "", []);
    } catch {
      return FieldReader.of({}, "", []);
    }
  }
}
