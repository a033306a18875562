import { randomUUID } from "node:crypto";
import { apiTime, isError, type ObjectMeta } from "../../../ground/model/index.ts";
import { stringAt } from "../json.ts";
import { type Kind, namespaces } from "../kinds/index.ts";
import { type ApiObject, keyOfObject } from "../object.ts";
import { alreadyExists, badRequest, forbidden, invalid, notFound, StatusError } from "../status-error.ts";
import { readInput } from "./input.ts";
import { generatedName, metadataProblems } from "./names.ts";
import type { World, WriteOptions } from "./world.ts";

export function createObject(
  world: World,
  kind: Kind,
  namespace: string,
  body: unknown,
  options: WriteOptions,
): ApiObject {
  const input = readInput(kind, body, options);
  if ((input.metadata.resourceVersion ?? "") !== "") {
    throw new StatusError(500, "", "resourceVersion should not be set on objects to be created");
  }
  const { managedFields } = options;
  const metadata = {
    ...newMetadata(kind, placed(kind, input.metadata, namespace), world),
    ...(managedFields !== undefined && { managedFields }),
  };
  requireNamespace(world, kind, metadata);
  const { status, ...rest } = input;
  const keepsStatus = !kind.hasStatus || kind.statusOnCreate === "kept";
  const fresh: ApiObject = {
    ...rest,
    ...(keepsStatus && status !== undefined && { status }),
    ...typeOf(input),
    metadata,
  };
  const strategy = world.strategyOf(kind);
  const admitted = strategy.admitCreate?.(fresh, world, options) ?? fresh;
  const problems = [
    ...metadataProblems(kind, admitted.metadata),
    ...(strategy.validateCreate?.(admitted) ?? []),
  ].filter(isError);
  if (problems.length > 0) throw invalid(kind, metadata.name ?? "", distinct(problems));
  const key = keyOfObject(admitted);
  if (world.store.get(kind.storage, key) !== undefined) throw alreadyExists(kind, metadata.name ?? "");
  return options.dryRun ? admitted : world.store.put(kind.storage, admitted);
}

const typeOf = ({ apiVersion, kind }: ApiObject): Pick<ApiObject, "apiVersion" | "kind"> => ({ apiVersion, kind });

function distinct<Item extends { readonly field: string; readonly message: string }>(items: readonly Item[]): Item[] {
  return [...new Map(items.map((item) => [`${item.field} ${item.message}`, item])).values()];
}

/** Metadata with the namespace of the request. */
export function placed(kind: Kind, metadata: ObjectMeta, namespace: string): ObjectMeta {
  if (!kind.namespaced) return metadata;
  if ((metadata.namespace ?? "") !== "" && metadata.namespace !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return { ...metadata, namespace };
}

function newMetadata(kind: Kind, given: ObjectMeta, world: World): ObjectMeta {
  const { deletionTimestamp, deletionGracePeriodSeconds, selfLink, managedFields, generation, ...kept } = given;
  const generateName = kept.generateName ?? "";
  const name = kept.name || (generateName === "" ? "" : generatedName(generateName));
  return {
    ...kept,
    ...(name !== "" && { name }),
    uid: randomUUID(),
    creationTimestamp: apiTime(world.clock.now()),
    ...(kind.countsGenerations && { generation: 1 }),
  };
}

function requireNamespace(world: World, kind: Kind, { namespace = "", name = "" }: ObjectMeta): void {
  if (!kind.namespaced) return;
  const found = world.store.get(namespaces.storage, namespace);
  if (found === undefined) throw notFound(namespaces, namespace);
  if (stringAt(found, "status", "phase") !== "Terminating") return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  throw forbidden(kind, name, why, [{ reason: "NamespaceTerminating", message, field: "metadata.namespace" }]);
}
