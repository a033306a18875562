import { type FSWatcher, watch } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, hasCode, type Logger, messageOf, Pause } from "../../../ground/base/index.ts";
import {
  type ConfigMap,
  decodeManifest,
  describeProblem,
  isError,
  jsonEqual,
  maxManifestBytes,
  type Secret,
} from "../../../ground/model/index.ts";
import { type ObjectKind, type ObjectKinds, type ObjectSource, objectKey, type VolumeObjectRef } from "./ports.ts";

export interface LocalObjectsOptions {
  /** The directory with the pods' manifests; files of other kinds in it are left to others. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often everything is looked at again, in case the kernel's notices got lost. */
  readonly checkEveryMs: number;
}

// Whoever writes a file in pieces leaves it readable in between; it is believed when it was left alone this long.
const settleMs = 10;
const defaultNamespace = "default";

/** Config maps and secrets from manifest files, for a machine without an API server. A bad edit keeps the last good version. */
export class LocalObjects implements ObjectSource {
  readonly #options: LocalObjectsOptions;
  readonly #pause: Pause;
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #scanned: Promise<void>;
  #onScanned: () => void = () => {};
  #files = new Map<string, ManifestFile>();
  #objects: ReadonlyMap<string, LocalObject> | undefined;

  constructor(options: LocalObjectsOptions) {
    this.#options = options;
    this.#pause = new Pause(options.clock);
    this.#scanned = new Promise((resolve) => {
      this.#onScanned = resolve;
    });
  }

  /** Watches in use; tests look for leaks. */
  get watches(): number {
    return this.#watches.size;
  }

  async get<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    _freshness: "latest" | "cached",
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined> {
    signal.throwIfAborted();
    await this.#scanned;
    return this.#objects?.get(objectKey(ref))?.object as ObjectKinds[Kind] | undefined;
  }

  watch<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    onObject: (object: ObjectKinds[Kind] | undefined) => void,
  ): Disposable {
    const key = objectKey(ref);
    const entry: Watch = (object) => onObject(object as ObjectKinds[Kind] | undefined);
    const watches = this.#watches.get(key) ?? new Set();
    this.#watches.set(key, watches.add(entry));
    if (this.#objects !== undefined) entry(this.#objects.get(key)?.object);
    return {
      [Symbol.dispose]: () => {
        watches.delete(entry);
        if (watches.size === 0 && this.#watches.get(key) === watches) this.#watches.delete(key);
      },
    };
  }

  async run(signal: AbortSignal): Promise<never> {
    const { directory, clock, log, checkEveryMs } = this.#options;
    let watcher: FSWatcher | undefined;
    let changed = false;
    const onEvent = (): void => {
      changed = true;
      this.#pause.cutShort();
    };
    try {
      for (;;) {
        signal.throwIfAborted();
        watcher ??= watchDirectory(directory, onEvent, () => {
          watcher?.close();
          watcher = undefined;
          onEvent();
        });
        changed = false;
        try {
          await this.#scan();
        } catch (error) {
          log.warn("Cannot look for local config maps and secrets", { directory, reason: messageOf(error) });
        }
        if (changed) await clock.sleep(settleMs, signal);
        else await this.#pause.wait(watcher === undefined ? Math.min(1_000, checkEveryMs) : checkEveryMs, signal);
      }
    } finally {
      watcher?.close();
    }
  }

  async #scan(): Promise<void> {
    const names = await namesIn(this.#options.directory);
    const files = new Map<string, ManifestFile>();
    for (const name of names) {
      const file = await this.#look(name, this.#files.get(name));
      if (file !== undefined) files.set(name, file);
    }
    this.#files = files;
    this.#publish(this.#index(files));
  }

  async #look(name: string, known: ManifestFile | undefined): Promise<ManifestFile | undefined> {
    const path = join(this.#options.directory, name);
    const stamp = await stampOf(path);
    if (stamp === undefined) return undefined;
    if (known?.stamp === stamp) return known;
    const text = await readFile(path, "utf8");
    if ((await stampOf(path)) !== stamp) {
      // Being written; its next notice brings us back.
      this.#pause.cutShort();
      return known;
    }
    const decoded = await decodeLocalObject(text);
    switch (decoded.type) {
      case "other kind":
        return { stamp, object: undefined };
      case "object":
        return { stamp, object: decoded.object };
      case "bad":
        this.#options.log.warn("A local config map or secret is not usable, the last good version stays", {
          file: path,
          problems: decoded.problems,
        });
        return { stamp, object: known?.object };
    }
  }

  #index(files: ReadonlyMap<string, ManifestFile>): ReadonlyMap<string, LocalObject> {
    const objects = new Map<string, LocalObject>();
    for (const [name, { object }] of files) {
      if (object === undefined) continue;
      if (objects.has(object.key)) {
        this.#options.log.warn("Two manifests name the same object, the first one counts", {
          file: name,
          object: object.key,
        });
      } else objects.set(object.key, object);
    }
    return objects;
  }

  #publish(next: ReadonlyMap<string, LocalObject>): void {
    const before = this.#objects;
    this.#objects = next;
    for (const [key, watches] of this.#watches) {
      const object = next.get(key)?.object;
      if (before !== undefined && jsonEqual(before.get(key)?.object, object)) continue;
      for (const tell of [...watches]) tell(object);
    }
    if (before === undefined) this.#onScanned();
  }
}

type Watch = (object: ConfigMap | Secret | undefined) => void;

interface LocalObject {
  readonly key: string;
  readonly object: ConfigMap | Secret;
}

interface ManifestFile {
  readonly stamp: string;
  readonly object: LocalObject | undefined;
}

type Decoded =
  | { readonly type: "other kind" }
  | { readonly type: "object"; readonly object: LocalObject }
  | { readonly type: "bad"; readonly problems: readonly string[] };

async function decodeLocalObject(text: string): Promise<Decoded> {
  // Most files are pods; they need not be parsed a second time.
  if (!/\bkind["']?\s*:\s*["']?(?:ConfigMap|Secret)\b/.test(text)) return { type: "other kind" };
  const { object, problems } = await decodeManifest(text, ["ConfigMap", "Secret"]);
  const errors = problems.filter(isError);
  if (errors.some(({ field }) => field === "kind")) return { type: "other kind" };
  if (object === undefined) return { type: "bad", problems: errors.map(describeProblem) };
  const { name, namespace = defaultNamespace } = object.metadata ?? {};
  if (name === undefined || name === "") return { type: "bad", problems: ["metadata.name: Required value"] };
  const metadata = { ...object.metadata, name, namespace };
  const kind = object.kind === "Secret" ? "secret" : "configmap";
  const complete = kind === "secret" ? withStringData(object) : object;
  return { type: "object", object: { key: objectKey({ kind, namespace, name }), object: { ...complete, metadata } } };
}

/** The API server moves plain texts of a secret into its data; without one, we do. */
function withStringData(secret: Secret): Secret {
  const { stringData, ...rest } = secret;
  if (stringData === undefined) return secret;
  const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString("base64")] as const);
  return { ...rest, data: { ...secret.data, ...Object.fromEntries(encoded) } };
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).filter((name) => !name.startsWith(".")).sort();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { mtimeNs, ctimeNs, size, ino, mode } = await stat(path, { bigint: true });
    const isFile = (mode & 0o170000n) === 0o100000n;
    return isFile && size <= BigInt(maxManifestBytes) ? `${ino}:${mtimeNs}:${ctimeNs}:${size}` : undefined;
  } catch {
    return undefined;
  }
}

function watchDirectory(directory: string, onEvent: () => void, onLost: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: true }, onEvent);
    watcher.on("error", onLost);
    return watcher;
  } catch {
    return undefined;
  }
}
