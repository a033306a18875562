import { isObject, type JsonObject } from "../json.ts";
import type { Kind } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { jsonPatch } from "../patch/json-patch.ts";
import { mergePatch } from "../patch/merge.ts";
import { PatchError } from "../patch/patch-error.ts";
import { strategicMergePatch } from "../patch/strategic.ts";
import { badRequest, invalid, notFound, StatusError } from "../status-error.ts";
import { type Applier, applyTo } from "./apply.ts";
import { createObject } from "./create.ts";
import { readInput } from "./input.ts";
import { type WriteTarget, type Written, writeUpdate } from "./update.ts";
import type { World, WriteOptions } from "./world.ts";

type PlainPatch = "json" | "merge" | "strategic";
export type PatchType = PlainPatch | "apply";

export function patchTypeOf(contentType: string): PatchType {
  switch (contentType.split(";")[0]?.trim()) {
    case "application/json-patch+json":
      return "json";
    case "application/merge-patch+json":
      return "merge";
    case "application/strategic-merge-patch+json":
      return "strategic";
    case "application/apply-patch+yaml":
      return "apply";
    default:
      throw new StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
      );
  }
}

export function patchObject(
  world: World,
  target: WriteTarget,
  type: PlainPatch,
  patch: unknown,
  options: WriteOptions,
): Written {
  const { kind, namespace, name } = target;
  const old = world.store.get(kind.storage, keyOf(namespace, name));
  if (old === undefined) throw notFound(kind, name);
  const patched = patching(kind, name, patch, () => patchedObject(kind, shownForm(kind, old), type, patch));
  return writePatched(world, target, old, patched, options);
}

/** PATCH with a configuration to apply; creates what does not exist. */
export function applyObject(
  world: World,
  target: WriteTarget,
  configuration: unknown,
  applier: Applier,
  options: WriteOptions,
): Written {
  const { kind, namespace, name, subresource } = target;
  const old = world.store.get(kind.storage, keyOf(namespace, name));
  if (old === undefined && subresource !== "") throw notFound(kind, name);
  const { object, managedFields } = patching(kind, name, configuration, () => {
    const shown = old === undefined ? undefined : shownForm(kind, old);
    return applyTo(world, kind, subresource, shown, requireObject(configuration), applier);
  });
  const owned = { ...options, managedFields };
  if (old === undefined) return { object: createObject(world, kind, namespace, object, owned), created: true };
  return writePatched(world, target, old, object, owned);
}

const shownForm = (kind: Kind, object: ApiObject): ApiObject =>
  kind.form === undefined ? object : kind.form.fromStored(object);

function writePatched(
  world: World,
  target: WriteTarget,
  old: ApiObject,
  patched: unknown,
  options: WriteOptions,
): Written {
  const { kind, name } = target;
  const wanted = readInput(kind, patched, options);
  if ((wanted.metadata.name ?? name) !== name) {
    throw badRequest(`the name of the object (${wanted.metadata.name}) does not match the name on the URL (${name})`);
  }
  // A version in the patch is a condition; the one of the object it was merged with is not.
  const isConditional = wanted.metadata.resourceVersion !== old.metadata.resourceVersion;
  const { resourceVersion, ...metadata } = wanted.metadata;
  const next: ApiObject = isConditional ? wanted : { ...wanted, metadata };
  return { object: writeUpdate(world, target, old, next, options), created: false };
}

/** Turns the errors of patches into those of requests. */
function patching<Result>(kind: Kind, name: string, patch: unknown, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    if (error.kind === "malformed") throw badRequest(error.message);
    if (error.kind === "too large") throw new StatusError(413, "RequestEntityTooLarge", error.message);
    if (error.kind === "unmergeable") throw new StatusError(500, "", error.message);
    throw invalid(kind, name, [
      { severity: "error", field: "patch", message: `Invalid value: ${shortened(patch)}: ${error.message}` },
    ]);
  }
}

/** What was wrong is in its first lines, or not to be found by reading. */
function shortened(patch: unknown): string {
  const text = JSON.stringify(patch);
  return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
}

const mostShown = 4096;

function patchedObject(kind: Kind, shown: ApiObject, type: PlainPatch, patch: unknown): unknown {
  switch (type) {
    case "json":
      return jsonPatch(shown, patch);
    case "merge":
      return mergePatch(shown, requireObject(patch));
    case "strategic":
      return strategicMergePatch(shown, requireObject(patch), kind.schema);
  }
}

function requireObject(patch: unknown): JsonObject {
  if (isObject(patch)) return patch;
  throw new PatchError("malformed", "the patch must be an object");
}
