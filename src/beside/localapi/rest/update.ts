import { isError, jsonEqual, ProblemList } from "../../../ground/model/index.ts";
import type { Kind } from "../kinds/index.ts";
import { type ApiObject, keyOf, keyOfObject } from "../object.ts";
import { badRequest, conflict, invalid, modifiedMeanwhile, notFound } from "../status-error.ts";
import { createObject, placed } from "./create.ts";
import { mayGo } from "./delete.ts";
import { readInput } from "./input.ts";
import { metadataProblems } from "./names.ts";
import type { World, WriteOptions } from "./world.ts";

export interface WriteTarget {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

export interface Written {
  readonly object: ApiObject;
  readonly created: boolean;
}

/** PUT. */
export function replaceObject(world: World, target: WriteTarget, body: unknown, options: WriteOptions): Written {
  const { kind, namespace, name, subresource } = target;
  const input = readInput(kind, body, options);
  const metadata = { ...placed(kind, input.metadata, namespace), name: input.metadata.name || name };
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
  const old = world.store.get(kind.storage, keyOf(namespace, name));
  if (old === undefined) {
    if (!kind.createsOnUpdate || subresource !== "") throw notFound(kind, name);
    const presented = kind.form === undefined ? input : kind.form.fromStored(input);
    return { object: createObject(world, kind, namespace, { ...presented, metadata }, options), created: true };
  }
  if (!kind.updatesUnconditionally && (metadata.resourceVersion ?? "") === "") {
    const problems = new ProblemList();
    problems.invalid("metadata.resourceVersion", 0, "must be specified for an update");
    throw invalid(kind, name, problems.problems);
  }
  if ((metadata.uid ?? "") !== "" && metadata.uid !== old.metadata.uid) {
    throw conflict(kind, name, otherUid(kind, old, metadata.uid));
  }
  return { object: writeUpdate(world, target, old, { ...input, metadata }, options), created: false };
}

/** In the words of the storage layer upstream, which checks it there. */
export function otherUid({ plural }: Kind, object: ApiObject, wanted = ""): string {
  const why = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${object.metadata.uid}`;
  const key = `/registry/${plural}/${keyOfObject(object)}`;
  return `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
}

/** Stores what the object shall become, keeping what clients may not change. */
export function writeUpdate(
  world: World,
  { kind, subresource }: WriteTarget,
  old: ApiObject,
  wanted: ApiObject,
  options: WriteOptions,
): ApiObject {
  const name = old.metadata.name ?? "";
  const givenVersion = wanted.metadata.resourceVersion ?? "";
  if (givenVersion !== "" && givenVersion !== old.metadata.resourceVersion)
    throw conflict(kind, name, modifiedMeanwhile);
  const strategy = world.strategyOf(kind);
  const kept = keepServerFields(wanted, old, options.managedFields ?? old.metadata.managedFields);
  let next: ApiObject;
  if (subresource === "") {
    const whole = kind.hasStatus ? withStatusOf(kept, old) : kept;
    next = strategy.admitUpdate?.(whole, old, world, options) ?? whole;
  } else {
    const part = subresource === "status" ? onlyStatus(kept, old) : kept;
    next = strategy.admitSubresource?.(subresource, part, old, world, options) ?? part;
  }
  const problems = [
    ...immutableProblems(wanted, old),
    ...metadataProblems(kind, next.metadata),
    ...(subresource === "" ? (strategy.validateUpdate?.(next, old) ?? []) : []),
  ].filter(isError);
  if (problems.length > 0) throw invalid(kind, name, problems);
  if (jsonEqual(next, old)) return old;
  const counted = countGeneration(kind, next, old);
  if (options.dryRun) return counted;
  if (!mayGo(world, kind, counted)) return world.store.put(kind.storage, counted);
  world.store.delete(kind.storage, keyOfObject(old));
  return counted;
}

function keepServerFields(
  wanted: ApiObject,
  old: ApiObject,
  owners: ApiObject["metadata"]["managedFields"],
): ApiObject {
  const { uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds } = old.metadata;
  const { managedFields, selfLink, ...metadata } = wanted.metadata;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.generation;
  return {
    ...wanted,
    metadata: {
      ...metadata,
      ...(old.metadata.namespace !== undefined && { namespace: old.metadata.namespace }),
      uid,
      creationTimestamp,
      ...(generation !== undefined && { generation }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
      ...(owners !== undefined && { managedFields: owners }),
      resourceVersion: old.metadata.resourceVersion,
    },
  };
}

function withStatusOf(object: ApiObject, old: ApiObject): ApiObject {
  const { status, ...rest } = object;
  return { ...rest, ...identity(object), ...(old["status"] !== undefined && { status: old["status"] }) };
}

/** All but the status and the metadata stay; who owns the object is not the business of who reports its status. */
function onlyStatus(object: ApiObject, old: ApiObject): ApiObject {
  const { status: oldStatus, ...rest } = old;
  const { ownerReferences, ...metadata } = object.metadata;
  return {
    ...rest,
    ...identity(object),
    metadata: {
      ...metadata,
      ...(old.metadata.ownerReferences !== undefined && { ownerReferences: old.metadata.ownerReferences }),
    },
    ...(object["status"] !== undefined && { status: object["status"] }),
  };
}

const identity = ({ apiVersion, kind, metadata }: ApiObject): ApiObject => ({ apiVersion, kind, metadata });

function immutableProblems(wanted: ApiObject, old: ApiObject): ProblemList["problems"] {
  const problems = new ProblemList();
  const { uid = "", name = "" } = wanted.metadata;
  if (uid !== "" && uid !== old.metadata.uid) problems.invalid("metadata.uid", uid, "field is immutable");
  if (name !== old.metadata.name) problems.invalid("metadata.name", name, "field is immutable");
  const before = new Set(old.metadata.finalizers);
  const added = (wanted.metadata.finalizers ?? []).filter((finalizer) => !before.has(finalizer));
  if (old.metadata.deletionTimestamp !== undefined && added.length > 0) {
    problems.forbidden(
      "metadata.finalizers",
      `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((each) => `"${each}"`).join(", ")}}`,
    );
  }
  return problems.problems;
}

function countGeneration(kind: Kind, next: ApiObject, old: ApiObject): ApiObject {
  if (!kind.countsGenerations || jsonEqual(next["spec"], old["spec"])) return next;
  return { ...next, metadata: { ...next.metadata, generation: (old.metadata.generation ?? 0) + 1 } };
}
