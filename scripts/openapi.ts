// What the generators read of the Kubernetes OpenAPI document.
import { readFileSync } from "node:fs";

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly "x-kubernetes-patch-strategy"?: string;
  readonly "x-kubernetes-patch-merge-key"?: string;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
}

/** The definitions in the file that the command names; `command` is for who forgets it. */
export function readDefinitions(command: string): Readonly<Record<string, Schema>> {
  const source = process.argv[2];
  if (source === undefined) throw new Error(`usage: npm run ${command} -- DEFINITIONS.json`);
  return (JSON.parse(readFileSync(source, "utf8")) as { definitions: Record<string, Schema> }).definitions;
}

/** Of "#/definitions/io.k8s.…" the definition's name. */
export function definitionIn(reference: string): string {
  return reference.replace("#/definitions/", "");
}

/** A type as the tables write it: "[]" before the type of a list's items, "{}" before that of a map's values. */
export function tableType(schema: Schema, reference: (definition: string) => string): string {
  if (schema.$ref !== undefined) return reference(definitionIn(schema.$ref));
  switch (schema.type) {
    case "string":
      return schema.format === "byte" ? "bytes" : "string";
    case "integer":
      return schema.format ?? "int64";
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return `[]${tableType(schema.items ?? {}, reference)}`;
    case "object":
      return schema.additionalProperties === undefined
        ? "any"
        : `{}${tableType(schema.additionalProperties, reference)}`;
    default:
      return "any";
  }
}
