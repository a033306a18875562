import type { ObjectMeta } from "../../ground/model/index.ts";
import { isObject, type JsonObject } from "./json.ts";

/** Any API object as it is stored: plain JSON with metadata. Stored objects are frozen and shared. */
export interface ApiObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

export function withMetadata(object: ApiObject, change: Partial<ObjectMeta>): ApiObject {
  return { ...object, metadata: { ...object.metadata, ...change } };
}

/** The object without this field of its metadata. */
export function withoutMetadata(object: ApiObject, ...fields: readonly (keyof ObjectMeta)[]): ApiObject {
  const metadata = { ...object.metadata };
  for (const field of fields) delete metadata[field];
  return { ...object, metadata };
}

/** The given JSON as an object whose metadata may be read; it need not be complete yet. */
export function asApiObject(value: JsonObject, apiVersion: string, kind: string): ApiObject {
  return { ...value, apiVersion, kind, metadata: isObject(value["metadata"]) ? value["metadata"] : {} };
}

/** Where an object stands among those of its resource: `namespace/name`, or `name` when it has no namespace. */
export function keyOf(namespace: string, name: string): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

export function keyOfObject({ metadata }: ApiObject): string {
  return keyOf(metadata.namespace ?? "", metadata.name ?? "");
}
