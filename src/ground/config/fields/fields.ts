import type { FieldSpec } from "./field-spec.ts";
import { nodeFields } from "./fields-node.ts";
import { resourceFields } from "./fields-resources.ts";
import { runtimeFields } from "./fields-runtime.ts";
import { serverFields } from "./fields-server.ts";
import { signalFields } from "./fields-signals.ts";

/** Every field of the KubeletConfiguration, by the path it has in the file. */
export const fields = { ...serverFields, ...nodeFields, ...runtimeFields, ...resourceFields, ...signalFields };

export type FieldPath = keyof typeof fields;

export type FieldValue<Path extends FieldPath> = (typeof fields)[Path] extends FieldSpec<infer Value> ? Value : never;

export const fieldPaths = Object.keys(fields) as FieldPath[];

/** The spec without its value type, for code that treats all fields alike. */
export function specOf(path: FieldPath): FieldSpec<unknown> {
  return fields[path] as FieldSpec<unknown>;
}

export function isFieldPath(text: string): text is FieldPath {
  return Object.hasOwn(fields, text);
}

/** Structs that may be absent altogether, which differs from being empty. */
export const optionalStructs = ["tracing", "userNamespaces"] as const;

/** "maxPods (--max-pods)", or just the field where there is no flag. */
export function label(path: FieldPath): string {
  const flag = specOf(path).flag;
  return flag === undefined ? path : `${path} (--${flag.name})`;
}
