import type { ConfigMap, PodUid, Secret } from "../../../ground/model/index.ts";

/** The API objects whose content pods get as files or variables. */
export interface ObjectKinds {
  readonly configmap: ConfigMap;
  readonly secret: Secret;
}

export type ObjectKind = keyof ObjectKinds;

export interface VolumeObjectRef<Kind extends ObjectKind = ObjectKind> {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

export function objectKey({ kind, namespace, name }: VolumeObjectRef): string {
  return `${kind}/${namespace}/${name}`;
}

/** Port: where objects come from, an API server or manifests on this machine. */
export interface ObjectSource {
  /** Undefined when there is no such object. `cached`: a slightly old answer is good enough. */
  get<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    freshness: "latest" | "cached",
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined>;
  /**
   * Tells the object as it is now (undefined: there is none) as soon as it is known, then every change. Trouble on
   * the way is the source's to mend: it tries again until the watch is disposed of. Those who watch take turns: `who`
   * that watches much waits for itself, not the others for it.
   */
  watch<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    onObject: (object: ObjectKinds[Kind] | undefined) => void,
    who: string,
  ): Disposable;
}

/** The objects as volumes see them; how fresh they are depends on the strategy behind. */
export interface Objects {
  read<Kind extends ObjectKind>(
    ref: VolumeObjectRef<Kind>,
    signal: AbortSignal,
  ): Promise<ObjectKinds[Kind] | undefined>;
  /** While somebody of a pod holds an object, its changes are told to the listeners. Holding twice is holding once. */
  hold(ref: VolumeObjectRef, holder: string, pod: PodUid): void;
  release(ref: VolumeObjectRef, holder: string): void;
  onChange(listener: (ref: VolumeObjectRef) => void): void;
  /** How often holders must read again because changes are not told; undefined when they are. */
  readonly pollMs: number | undefined;
}

/** An object could not be read for now; the message reaches the pod's owner. */
export class ObjectReadError extends Error {
  override readonly name = "ObjectReadError";
}

/** True when `next` was made before `present`: caches may answer with what they no longer know to be old. */
export function isOlder(next: ConfigMap | Secret | undefined, present: ConfigMap | Secret | undefined): boolean {
  const [a, b] = [next?.metadata, present?.metadata];
  if (a?.uid !== b?.uid) return false;
  const [newer, older] = [versionOf(a?.resourceVersion), versionOf(b?.resourceVersion)];
  return newer !== undefined && older !== undefined && newer < older;
}

function versionOf(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\d+$/.test(text) ? BigInt(text) : undefined;
}
