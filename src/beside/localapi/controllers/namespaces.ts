import { rootCaConfigMap } from "../admission/service-account.ts";
import type { Kind } from "../kinds/index.ts";
import { configMaps, namespaces, serviceAccounts } from "../kinds/index.ts";
import { keyOf } from "../object.ts";
import { createObject } from "../rest/create.ts";
import { deleteObject } from "../rest/delete.ts";
import type { World, WriteOptions } from "../rest/world.ts";
import { contentsOf } from "../strategies/index.ts";

/** The server itself, where it does what controllers do in a cluster. */
export const serverOptions: WriteOptions = {
  user: { name: "system:apiserver", groups: ["system:masters"] },
  dryRun: false,
  unknownFields: "refuse",
  warn() {},
};

/** Gives every namespace a default service account and the authority's certificate; empties those that shall go. */
export function runNamespaces(world: World, caPem: string): () => void {
  const furnish = (namespace: string): void => {
    ensure(world, serviceAccounts, namespace, { metadata: { name: "default" } });
    ensure(world, configMaps, namespace, { metadata: { name: rootCaConfigMap }, data: { "ca.crt": caPem } });
  };
  for (const { metadata } of world.store.list(namespaces.storage)) furnish(metadata.name ?? "");
  return world.store.subscribe("*", ({ type, resource, object }) => {
    const { name = "", namespace = "", deletionTimestamp } = object.metadata;
    if (resource === namespaces.storage) {
      if (type === "ADDED") furnish(name);
      if (type === "MODIFIED" && deletionTimestamp !== undefined) empty(world, name);
    } else if (type === "DELETED" && namespace !== "") restore(world, resource, namespace, furnish);
  });
}

/** What must stand in a namespace comes back; the namespace itself goes when the last thing in it has gone. */
function restore(world: World, resource: string, namespace: string, furnish: (namespace: string) => void): void {
  const found = world.store.get(namespaces.storage, namespace);
  if (found === undefined) return;
  if (found.metadata.deletionTimestamp !== undefined) removeIfEmpty(world, namespace);
  else if (resource === serviceAccounts.storage || resource === configMaps.storage) furnish(namespace);
}

function ensure(
  world: World,
  kind: Kind,
  namespace: string,
  object: { metadata: { name: string }; [key: string]: unknown },
): void {
  if (world.store.get(kind.storage, keyOf(namespace, object.metadata.name)) !== undefined) return;
  createObject(world, kind, namespace, object, serverOptions);
}

function empty(world: World, namespace: string): void {
  for (const { kind, object } of contentsOf(world, namespace)) {
    if (object.metadata.deletionTimestamp !== undefined) continue;
    deleteObject(world, kind, namespace, object.metadata.name ?? "", {}, serverOptions);
  }
  removeIfEmpty(world, namespace);
}

function removeIfEmpty(world: World, namespace: string): void {
  if (world.store.countIn(namespace) === 0) world.store.delete(namespaces.storage, namespace);
}
