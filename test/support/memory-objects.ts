import type { ConfigMap, Secret } from "../../src/ground/model/index.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  type ObjectSource,
  objectKey,
  type VolumeObjectRef,
} from "../../src/pod/volumes/objects/ports.ts";

/** Config maps and secrets as an API server keeps them: versions grow, watches tell the present object, then changes. */
export class MemoryObjects implements ObjectSource {
  readonly #objects = new Map<string, ConfigMap | Secret>();
  readonly #watches = new Map<string, Set<(object: ConfigMap | Secret | undefined) => void>>();
  #version = 0;
  /** Thrown by every request while set; watches fall silent. */
  outage: Error | undefined;
  /** Requests so far. */
  gets = 0;

  get watches(): number {
    return [...this.#watches.values()].reduce((sum, set) => sum + set.size, 0);
  }

  configMap(name: string, data: Record<string, string>, more: Partial<ConfigMap> = {}): void {
    this.put({ kind: "configmap", namespace: "default", name }, { data, ...more });
  }

  secret(name: string, data: Record<string, string>, more: Partial<Secret> = {}): void {
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")] as const);
    this.put({ kind: "secret", namespace: "default", name }, { data: Object.fromEntries(encoded), ...more });
  }

  put(ref: VolumeObjectRef, object: ConfigMap | Secret): void {
    const key = objectKey(ref);
    const uid = this.#objects.get(key)?.metadata?.uid ?? `uid-${++this.#version}`;
    const { namespace, name } = ref;
    const metadata = { name, namespace, uid, resourceVersion: String(++this.#version) };
    this.#objects.set(key, { ...object, metadata });
    this.#tell(key);
  }

  remove(kind: ObjectKind, name: string, namespace = "default"): void {
    const key = objectKey({ kind, namespace, name });
    this.#objects.delete(key);
    this.#tell(key);
  }

  async get<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    _freshness: "latest" | "cached",
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined> {
    signal.throwIfAborted();
    this.gets++;
    if (this.outage !== undefined) throw this.outage;
    return this.#objects.get(objectKey(ref)) as ObjectKinds[Kind] | undefined;
  }

  watch<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    onObject: (object: ObjectKinds[Kind] | undefined) => void,
  ): Disposable {
    const key = objectKey(ref);
    const tell = (object: ConfigMap | Secret | undefined): void => onObject(object as ObjectKinds[Kind] | undefined);
    const watches = this.#watches.get(key) ?? new Set();
    this.#watches.set(key, watches.add(tell));
    setImmediate(() => {
      if (watches.has(tell) && this.outage === undefined) tell(this.#objects.get(key));
    });
    return {
      [Symbol.dispose]: () => {
        watches.delete(tell);
        if (watches.size === 0) this.#watches.delete(key);
      },
    };
  }

  #tell(key: string): void {
    if (this.outage !== undefined) return;
    for (const tell of this.#watches.get(key) ?? []) setImmediate(() => tell(this.#objects.get(key)));
  }
}
