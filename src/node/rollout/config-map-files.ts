import { join } from "node:path";
import type { StoreDisk } from "./store.ts";
import { type ConfigMapSource, type ConfigVersion, versionOf } from "./version.ts";

/** Files of config maps where older kubelets keep them, since relative paths in them begin there. */
export class ConfigMapFiles {
  readonly #disk: StoreDisk;
  readonly #directory: string;

  /** `directory`: that of --dynamic-config-dir. */
  constructor(directory: string, disk: StoreDisk) {
    this.#disk = disk;
    this.#directory = join(directory, "store", "checkpoints");
  }

  /** What is kept of it, as a version of the configuration; undefined when it is not there. */
  async find(source: ConfigMapSource): Promise<ConfigVersion | undefined> {
    if (!hasFileNames(source)) return undefined;
    const path = this.#path(source);
    const text = await this.#disk.read(path);
    return text === undefined ? undefined : configMapVersion(source, path, text);
  }

  /** The path of the file. The parts of the source are names of files: whoever calls has made sure of that. */
  async save(source: ConfigMapSource, text: string): Promise<string> {
    const path = this.#path(source);
    if ((await this.#disk.read(path).catch(() => undefined)) !== text) await this.#disk.saveDurably(path, text);
    return path;
  }

  /** Removes all but these: a config map that is edited every minute would fill the disk. */
  async keepOnly(sources: readonly ConfigMapSource[]): Promise<void> {
    const kept = new Set(sources.map(({ uid, resourceVersion }) => join(uid, resourceVersion)));
    for (const uid of await this.#disk.list(this.#directory)) {
      for (const resourceVersion of await this.#disk.list(join(this.#directory, uid))) {
        if (kept.has(join(uid, resourceVersion))) continue;
        await this.#disk.removeDirectory(join(this.#directory, uid, resourceVersion));
      }
      const isEmpty = (await this.#disk.list(join(this.#directory, uid))).length === 0;
      if (isEmpty) await this.#disk.removeDirectory(join(this.#directory, uid));
    }
  }

  #path({ uid, resourceVersion, key }: ConfigMapSource): string {
    return join(this.#directory, uid, resourceVersion, key);
  }
}

/** A configuration that is the file of a config map; relative paths in it begin where the file lies. */
export function configMapVersion(source: ConfigMapSource, path: string, text: string): ConfigVersion {
  return versionOf({
    source: { from: "configMap", ...source },
    words: [`--config=${path}`, "--config-dir="],
    snapshot: { files: { [path]: Buffer.from(text).toString("base64") }, directories: {}, kinds: {} },
  });
}

/** What becomes a name of a file must be one, whoever sent it. */
export function hasFileNames({ uid, resourceVersion, key }: ConfigMapSource): boolean {
  return [uid, resourceVersion, key].every((name) => /^[-._a-zA-Z0-9]{1,253}$/.test(name) && !/^\.+$/.test(name));
}
