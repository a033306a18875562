import { type Kind, kinds, storedKinds } from "../kinds/index.ts";
import { type ApiObject, keyOfObject, withMetadata } from "../object.ts";
import { deleteObject } from "../rest/delete.ts";
import type { World } from "../rest/world.ts";
import { serverOptions } from "./namespaces.ts";

interface Dependent {
  readonly kind: Kind;
  readonly key: string;
}

/** Deletes what belonged to objects that are gone. */
export function runGarbageCollection(world: World): () => void {
  const dependents = new Map<string, Map<string, Dependent>>();
  const kindOf = new Map(storedKinds.map((kind) => [kind.storage, kind]));

  const remember = (resource: string, object: ApiObject): void => {
    const kind = kindOf.get(resource);
    if (kind === undefined) return;
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const known = dependents.get(uid) ?? new Map<string, Dependent>();
      dependents.set(uid, known.set(`${resource} ${keyOfObject(object)}`, { kind, key: keyOfObject(object) }));
    }
  };
  for (const kind of storedKinds) for (const object of world.store.list(kind.storage)) remember(kind.storage, object);

  return world.store.subscribe("*", ({ type, resource, object }) => {
    if (type !== "DELETED") {
      remember(resource, object);
      if (type === "ADDED") collectIfOrphaned(world, kindOf.get(resource), object);
      return;
    }
    const { uid = "", ownerReferences = [] } = object.metadata;
    for (const owner of ownerReferences) {
      const known = dependents.get(owner.uid);
      known?.delete(`${resource} ${keyOfObject(object)}`);
      if (known?.size === 0) dependents.delete(owner.uid);
    }
    for (const { kind, key } of dependents.get(uid)?.values() ?? []) {
      const dependent = world.store.get(kind.storage, key);
      if (dependent !== undefined) release(world, kind, dependent, uid);
    }
    dependents.delete(uid);
  });
}

/** An object goes when its last owner has gone; until then it only forgets the one that went. */
function release(world: World, kind: Kind, object: ApiObject, goneUid: string): void {
  const owners = object.metadata.ownerReferences ?? [];
  if (!owners.some(({ uid }) => uid === goneUid)) return;
  const left = owners.filter(({ uid }) => uid !== goneUid);
  const { namespace = "", name = "" } = object.metadata;
  if (left.length > 0) world.store.put(kind.storage, withMetadata(object, { ownerReferences: left }));
  else if (object.metadata.deletionTimestamp === undefined)
    deleteObject(world, kind, namespace, name, {}, serverOptions);
}

/** Something made for an owner that was gone already. */
function collectIfOrphaned(world: World, kind: Kind | undefined, object: ApiObject): void {
  const owners = object.metadata.ownerReferences ?? [];
  if (kind === undefined || owners.length === 0) return;
  const { namespace = "", name = "" } = object.metadata;
  const isAlive = owners.some((owner) => {
    const ownerKind = kinds.find((each) => each.kind === owner.kind);
    // Owners of kinds that this server does not know can't be looked for.
    if (ownerKind === undefined) return true;
    const key = ownerKind.namespaced ? `${namespace}/${owner.name}` : owner.name;
    return world.store.get(ownerKind.storage, key)?.metadata.uid === owner.uid;
  });
  if (!isAlive) deleteObject(world, kind, namespace, name, {}, serverOptions);
}
