import { apiTime, type ObjectMeta } from "../../../ground/model/index.ts";
import type { Kind } from "../kinds/index.ts";
import { type ApiObject, keyOf, keyOfObject, withMetadata } from "../object.ts";
import { conflict, notFound } from "../status-error.ts";
import { orphanDependents } from "./orphans.ts";
import type { World, WriteOptions } from "./world.ts";

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: "Orphan" | "Background" | "Foreground";
}

export interface Deletion {
  /** The object as it was last. */
  readonly object: ApiObject;
  /** False while its grace period or a finalizer keeps it. */
  readonly gone: boolean;
}

export function deleteObject(
  world: World,
  kind: Kind,
  namespace: string,
  name: string,
  wanted: DeleteOptions,
  options: WriteOptions,
): Deletion {
  const found = world.store.get(kind.storage, keyOf(namespace, name));
  if (found === undefined) throw notFound(kind, name);
  checkPreconditions(kind, found, wanted);
  world.strategyOf(kind).admitDelete?.(found, world, options);
  const marked = markDeleted(world, kind, found, wanted);
  if (options.dryRun) return { object: marked, gone: mayGo(world, kind, marked) };
  if (wanted.propagation === "Orphan") orphanDependents(world, found);
  if (mayGo(world, kind, marked)) {
    // Where deletion may take time, its mark is seen even when it takes none.
    if (world.strategyOf(kind).graceSeconds !== undefined) world.store.put(kind.storage, marked);
    return { object: world.store.delete(kind.storage, keyOfObject(found)) ?? marked, gone: true };
  }
  return { object: marked === found ? found : world.store.put(kind.storage, marked), gone: false };
}

function checkPreconditions(kind: Kind, { metadata }: ApiObject, { uid, resourceVersion }: DeleteOptions): void {
  const name = metadata.name ?? "";
  // Here, and only here, conflicts name the kind instead of the resource.
  const subject = { ...kind, plural: kind.kind };
  if (uid !== undefined && uid !== metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}).`;
    throw conflict(subject, name, `${why} The object might have been deleted and then recreated`);
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}).`;
    throw conflict(subject, name, `${why} The object might have been modified`);
  }
}

/** The object as it is while it waits for its end; a grace period can only be shortened. */
function markDeleted(
  world: World,
  kind: Kind,
  object: ApiObject,
  { gracePeriodSeconds: asked }: DeleteOptions,
): ApiObject {
  const strategy = world.strategyOf(kind);
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0, generation = 0 } = object.metadata;
  if (deletionTimestamp !== undefined) {
    if (strategy.graceSeconds === undefined || asked === undefined || asked >= current) return object;
    const shortened = Math.max(asked, 0);
    const end = Date.parse(deletionTimestamp) - (current - shortened) * 1000;
    return withMetadata(object, { deletionTimestamp: apiTime(end), deletionGracePeriodSeconds: shortened });
  }
  const graceSeconds = strategy.graceSeconds?.(object, asked) ?? 0;
  const change: Partial<ObjectMeta> = {
    deletionTimestamp: apiTime(world.clock.now() + graceSeconds * 1000),
    deletionGracePeriodSeconds: graceSeconds,
    ...(generation > 0 && { generation: generation + 1 }),
  };
  const marked = withMetadata(object, change);
  return strategy.markDeleted?.(marked) ?? marked;
}

/** Whether nothing keeps an object that is being deleted. */
export function mayGo(world: World, kind: Kind, object: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds > 0 || finalizers.length > 0) return false;
  return world.strategyOf(kind).holds?.(object, world) !== true;
}
