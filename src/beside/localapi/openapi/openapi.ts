import { table } from "../../../ground/base/index.ts";
import { resourcesOf, type ServedResource, servedGroups } from "../discovery/served.ts";
import { json, type Reply } from "../http/reply.ts";
import type { JsonObject } from "../json.ts";
import { apiVersionOf, kindByPath } from "../kinds/index.ts";
import { type FieldSchema, type FieldType, schemaOf } from "../schema/schema.ts";

/** The OpenAPI documents, made from the schema table; kubectl reads them to explain, and to learn what we check. */
export function openApi(path: string, accept: string): Reply | undefined {
  if (path === "/openapi/v2") return olderDocument(accept);
  if (path === "/openapi/v3") return json({ paths: Object.fromEntries(servedGroups.map(indexEntry)) });
  const served = servedGroups.find((group) => path === `/openapi/v3/${pathOf(group)}`);
  return served === undefined ? undefined : json(documentOf(served));
}

const about = { title: "Kubernetes", version: "v1.34.0" };
const protobufDocument = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/**
 * kubectl checks a List by version 2 of the specification before it sends the items one by one. What this does not
 * describe it leaves to us, and we check everything; so it describes nothing.
 */
function olderDocument(accept: string): Reply {
  if (!accept.includes(protobufDocument)) return json({ swagger: "2.0", info: about, paths: {}, definitions: {} });
  // Fields 1 and 2, swagger and info; in info the title and the version.
  const info = Buffer.concat([textField(1, about.title), textField(2, about.version)]);
  const bytes = Buffer.concat([textField(1, "2.0"), bytesField(2, info)]);
  // An at sign may stand in what is asked for, and not in what is answered.
  return { type: "bytes", code: 200, contentType: protobufDocument.replace("@", "."), bytes };
}

const textField = (number: number, text: string): Buffer => bytesField(number, Buffer.from(text));

/** A field of protobuf with at most 127 bytes. */
function bytesField(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
}

type GroupVersion = (typeof servedGroups)[number];

function pathOf({ group, version }: GroupVersion): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

function indexEntry(served: GroupVersion): [string, JsonObject] {
  return [pathOf(served), { serverRelativeURL: `/openapi/v3/${pathOf(served)}?hash=1` }];
}

function documentOf(served: GroupVersion): JsonObject {
  const schemas: Record<string, JsonObject> = {};
  const paths: Record<string, JsonObject> = {};
  for (const resource of resourcesOf(served.group, served.version)) {
    const kind = kindByPath(resource.group, resource.version, resource.plural);
    if (kind === undefined) continue;
    describeType(kind.schema, schemas, gvkOf(resource));
    paths[itemPath(resource)] = itemOperations(resource, kind.schema);
  }
  return {
    openapi: "3.0.0",
    info: about,
    paths,
    components: { schemas },
  };
}

function gvkOf({ group, version, kind }: ServedResource): JsonObject {
  return { group, version, kind };
}

function itemPath({ group, version, plural, namespaced }: ServedResource): string {
  const root = group === "" ? "/api/" : "/apis/";
  return `${root}${apiVersionOf({ group, version })}${namespaced ? "/namespaces/{namespace}" : ""}/${plural}/{name}`;
}

/** kubectl looks here whether the server checks fields itself. */
function itemOperations(resource: ServedResource, schema: string): JsonObject {
  const parameter = (name: string): JsonObject => ({
    name,
    in: "query",
    schema: { type: "string", uniqueItems: true },
  });
  const parameters = ["dryRun", "fieldManager", "fieldValidation"].map(parameter);
  const content = { "application/json": { schema: reference(schema) } };
  const operation = (action: string): JsonObject => ({
    parameters,
    responses: { "200": { description: "OK", content } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": gvkOf(resource),
  });
  return { patch: operation("patch"), put: operation("put"), post: operation("post") };
}

function fullName(type: string): string {
  return type.startsWith("meta.") ? `io.k8s.apimachinery.pkg.apis.${type}` : `io.k8s.api.${type}`;
}

function reference(type: string): JsonObject {
  return { $ref: `#/components/schemas/${fullName(type)}` };
}

function describeType(type: string, schemas: Record<string, JsonObject>, gvk?: JsonObject): void {
  if (schemas[fullName(type)] !== undefined) return;
  const schema = schemaOf(type);
  if (schema === undefined) return;
  schemas[fullName(type)] = {};
  const required = [...schema.fields].filter(([, field]) => field.required).map(([name]) => name);
  schemas[fullName(type)] = {
    type: "object",
    properties: Object.fromEntries([...schema.fields].map(([name, field]) => [name, describeField(field, schemas)])),
    ...(required.length > 0 && { required }),
    ...(gvk !== undefined && { "x-kubernetes-group-version-kind": [gvk] }),
    ...(schema.atomic && { "x-kubernetes-map-type": "atomic" }),
  };
}

function describeField(field: FieldSchema, schemas: Record<string, JsonObject>): JsonObject {
  const { type, mergeKey, retainKeys, replace, mapKeys, isSet, atomic } = field;
  const strategies = [mergeKey !== undefined && "merge", retainKeys && "retainKeys", replace && "replace"].filter(
    Boolean,
  );
  return {
    ...describeValue(type, schemas),
    ...(strategies.length > 0 && { "x-kubernetes-patch-strategy": strategies.join(",") }),
    ...(mergeKey && { "x-kubernetes-patch-merge-key": mergeKey }),
    ...(type.form === "list" && { "x-kubernetes-list-type": mapKeys ? "map" : isSet ? "set" : "atomic" }),
    ...(mapKeys && { "x-kubernetes-list-map-keys": mapKeys }),
    ...(atomic && { "x-kubernetes-map-type": "atomic" }),
  };
}

const scalars: Readonly<Record<string, JsonObject>> = table({
  any: { type: "object" },
  bytes: { type: "string", format: "byte" },
  boolean: { type: "boolean" },
  int32: { type: "integer", format: "int32" },
  int64: { type: "integer", format: "int64" },
  number: { type: "number" },
  quantity: { oneOf: [{ type: "string" }, { type: "number" }] },
  "int-or-string": { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] },
  time: { type: "string", format: "date-time" },
  "micro-time": { type: "string", format: "date-time" },
});

function describeValue(type: FieldType, schemas: Record<string, JsonObject>): JsonObject {
  switch (type.form) {
    case "scalar":
      return scalars[type.name] ?? { type: "string" };
    case "list":
      return { type: "array", items: describeValue(type.of, schemas) };
    case "map":
      return { type: "object", additionalProperties: describeValue(type.of, schemas) };
    case "object":
      describeType(type.type, schemas);
      // A reference with siblings is not allowed, so it stands in a list of one.
      return { allOf: [reference(type.type)] };
  }
}
