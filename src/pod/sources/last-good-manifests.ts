import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isShortage, type Logger, messageOf, savePrivateFile } from "../../ground/base/index.ts";

/** One manifest as it was when it was last good. */
interface SavedManifest {
  readonly source: "file" | "http";
  /** Path or URL. */
  readonly place: string;
  readonly manifest: string;
}

/**
 * The last good version of every manifest, on disk. A manifest that is found broken when the agent starts may have
 * a running pod: what that pod was made from is known from here. Losing a file costs that knowledge and nothing
 * else, so trouble with the disk is logged and not raised. But for one: while the machine lacks what it takes to read,
 * nothing is lost, and whoever asks has to ask again.
 */
export class LastGoodManifests {
  readonly #directory: string;
  readonly #source: SavedManifest["source"];
  readonly #log: Logger;

  constructor(directory: string, source: SavedManifest["source"], log: Logger) {
    this.#directory = directory;
    this.#source = source;
    this.#log = log;
  }

  async load(place: string): Promise<Uint8Array | undefined> {
    const saved = await this.#read(this.#pathOf(place));
    if (saved?.place !== place) return undefined;
    return Buffer.from(saved.manifest);
  }

  async has(place: string): Promise<boolean> {
    return (await this.load(place)) !== undefined;
  }

  async save(place: string, manifest: Uint8Array): Promise<void> {
    const path = this.#pathOf(place);
    const text = Buffer.from(manifest).toString();
    const saved: SavedManifest = { source: this.#source, place, manifest: text };
    try {
      if ((await this.#read(path))?.manifest === text) return;
      await savePrivateFile(path, JSON.stringify(saved));
    } catch (error) {
      this.#log.error("Cannot save the last good version of a manifest", error, { manifest: place, path });
    }
  }

  async remove(place: string): Promise<void> {
    await rm(this.#pathOf(place), { force: true }).catch((error: unknown) => {
      this.#log.error("Cannot remove the last good version of a manifest", error, { manifest: place });
    });
  }

  /** Removes what this source saved for manifests that are not there any more. */
  async keepOnly(places: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#directory).catch(() => []);
    for (const name of names) {
      // What stays is removed another time.
      const saved = await this.#read(join(this.#directory, name)).catch(() => undefined);
      if (saved?.source === this.#source && !places.has(saved.place)) await this.remove(saved.place);
    }
  }

  #pathOf(place: string): string {
    return join(this.#directory, `${createHash("sha256").update(`${this.#source}:${place}`).digest("hex")}.json`);
  }

  async #read(path: string): Promise<SavedManifest | undefined> {
    try {
      const found: unknown = JSON.parse(await readFile(path, "utf8"));
      return isSavedManifest(found) ? found : undefined;
    } catch (error) {
      if (isShortage(error)) throw error;
      this.#log.debug(4, "No last good version of a manifest", { path, reason: messageOf(error) });
      return undefined;
    }
  }
}

function isSavedManifest(value: unknown): value is SavedManifest {
  if (typeof value !== "object" || value === null) return false;
  const { source, place, manifest } = value as Partial<Record<keyof SavedManifest, unknown>>;
  return (source === "file" || source === "http") && typeof place === "string" && typeof manifest === "string";
}
