import type { ApiObject } from "../object.ts";

/** A kind of object the server stores, and in which ways it differs from the others. */
export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** "path": any name will do that can stand in a path, not only one that could be a host's. */
  readonly names?: "path";
  /** Its type in the schema table. */
  readonly schema: string;
  /** Its objects' place in the store; kinds that show the same objects in two groups share one. */
  readonly storage: string;
  /** It has a status subresource: plain writes leave the status alone, status writes leave all but it alone. */
  readonly hasStatus: boolean;
  /** A node tells its status when it registers; for other kinds that comes later. */
  readonly statusOnCreate: "kept" | "dropped";
  /** metadata.generation counts changes of the spec. */
  readonly countsGenerations: boolean;
  /** PUT creates what does not exist. */
  readonly createsOnUpdate: boolean;
  /** PUT without a resourceVersion overwrites whatever is there. */
  readonly updatesUnconditionally: boolean;
  /** DELETE answers with the object rather than with a Status. */
  readonly returnsDeleted: boolean;
  /** Fields that field selectors may name beside metadata.name and metadata.namespace. */
  readonly selectable: Readonly<Record<string, (object: ApiObject) => string>>;
  readonly subresources: readonly Subresource[];
  /** For a kind that shows objects of another form than is stored. */
  readonly form?: { toStored(object: ApiObject): ApiObject; fromStored(object: ApiObject): ApiObject };
}

export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

type Definition = Pick<Kind, "group" | "kind" | "plural"> & Partial<Kind>;

export function define(definition: Definition): Kind {
  const { group, kind, plural } = definition;
  const version = definition.version ?? "v1";
  const folder = group === "" ? "core" : (group.split(".")[0] ?? group);
  return {
    version,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced: true,
    schema: `${folder}.${version}.${kind}`,
    storage: plural,
    hasStatus: false,
    statusOnCreate: "dropped",
    countsGenerations: false,
    createsOnUpdate: false,
    updatesUnconditionally: true,
    returnsDeleted: false,
    selectable: {},
    subresources: [],
    ...definition,
  };
}

export function apiVersionOf({ group, version }: Pick<Kind, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}
