import { ApiError, badRequest, invalid, notFound } from "../api-error.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Kind } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { applyConfiguration } from "../patch/apply.ts";
import { jsonPatch } from "../patch/json-patch.ts";
import { mergePatch } from "../patch/merge.ts";
import { PatchError } from "../patch/patch-error.ts";
import { strategicMergePatch } from "../patch/strategic.ts";
import { createObject } from "./create.ts";
import { readInput } from "./input.ts";
import { type Target, type Written, writeUpdate } from "./update.ts";
import type { World, WriteOptions } from "./world.ts";

export type PatchType = "json" | "merge" | "strategic" | "apply";

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
      throw new ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
      );
  }
}

export function patchObject(
  world: World,
  target: Target,
  type: PatchType,
  patch: unknown,
  options: WriteOptions,
): Written {
  const { kind, namespace, name } = target;
  const old = world.store.get(kind.storage, keyOf(namespace, name));
  if (old === undefined) {
    if (type !== "apply" || target.subresource !== "" || !isObject(patch)) throw notFound(kind, name);
    return { object: createObject(world, kind, namespace, patch, options), created: true };
  }
  const shown = kind.form === undefined ? old : kind.form.fromStored(old);
  const patched = patchedObject(kind, name, shown, type, patch);
  const wanted = readInput(kind, patched, options);
  // A version in the patch is a condition; the one of the object it was merged with is not.
  const isConditional = wanted.metadata.resourceVersion !== old.metadata.resourceVersion;
  const { resourceVersion, ...metadata } = wanted.metadata;
  const next: ApiObject = isConditional ? wanted : { ...wanted, metadata };
  return { object: writeUpdate(world, target, old, next, options), created: false };
}

function patchedObject(kind: Kind, name: string, shown: ApiObject, type: PatchType, patch: unknown): unknown {
  try {
    switch (type) {
      case "json":
        return jsonPatch(shown, patch);
      case "merge":
        return mergePatch(shown, requireObject(patch));
      case "strategic":
        return strategicMergePatch(shown, requireObject(patch), kind.schema);
      case "apply":
        return applyConfiguration(shown, requireObject(patch), kind.schema);
    }
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    if (error.kind === "malformed") throw badRequest(error.message);
    if (error.kind === "unmergeable") throw new ApiError(500, "", error.message);
    throw invalid(kind, name, [
      { severity: "error", field: "patch", message: `Invalid value: ${JSON.stringify(patch)}: ${error.message}` },
    ]);
  }
}

function requireObject(patch: unknown): JsonObject {
  if (isObject(patch)) return patch;
  throw new PatchError("malformed", "the patch must be an object");
}
