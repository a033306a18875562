import type { Need } from "../kinds/kind.ts";
import { type Objects, objectKey, type VolumeObjectRef } from "../objects/ports.ts";
import type { TrustBundles } from "../objects/trust-bundles.ts";
import type { VolumeTask } from "./volume-task.ts";

export interface ContentSources {
  readonly objects: Objects | undefined;
  readonly trustBundles: TrustBundles | undefined;
}

const trustBundlesKey = "trustbundles";

/**
 * From a changed config map, secret or trust bundle to the volumes that are made of it: their tasks run again and write
 * what is new. An object is watched while a task needs it.
 */
export class ContentUpdates {
  readonly #sources: ContentSources;
  readonly #users = new Map<string, Set<VolumeTask>>();

  constructor(sources: ContentSources) {
    this.#sources = sources;
    sources.objects?.onChange((ref) => this.#changed(objectKey(ref)));
    sources.trustBundles?.onChange(() => this.#changed(trustBundlesKey));
  }

  /** Objects that some task needs. */
  get size(): number {
    return this.#users.size;
  }

  /** The task needs other objects than before. */
  needsChanged(task: VolumeTask, before: readonly Need[]): void {
    const wanted = new Set(task.needs.map(needKey));
    for (const need of before) if (!wanted.has(needKey(need))) this.#drop(task, need);
    for (const need of task.needs) {
      const key = needKey(need);
      const users = this.#users.get(key) ?? new Set();
      this.#users.set(key, users.add(task));
      if (isObject(need)) this.#sources.objects?.hold(need, task.key, task.uid);
    }
  }

  /** The task is over. */
  forget(task: VolumeTask): void {
    for (const need of task.needs) this.#drop(task, need);
  }

  #drop(task: VolumeTask, need: Need): void {
    const key = needKey(need);
    const users = this.#users.get(key);
    users?.delete(task);
    if (users?.size === 0) this.#users.delete(key);
    if (isObject(need)) this.#sources.objects?.release(need, task.key);
  }

  #changed(key: string): void {
    for (const task of this.#users.get(key) ?? []) task.contentChanged();
  }
}

function isObject(need: Need): need is VolumeObjectRef {
  return need.kind !== "trustbundles";
}

function needKey(need: Need): string {
  return isObject(need) ? objectKey(need) : trustBundlesKey;
}
