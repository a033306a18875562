import type { ObjectMeta } from "../../../ground/model/index.ts";
import { apiTime, ProblemList } from "../../../ground/model/index.ts";
import { isObject, type JsonObject } from "../json.ts";
import { apiVersionOf, type Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import { applyConfiguration } from "../patch/apply.ts";
import { common, differing, type FieldTree, fieldTree, removeFields, without } from "../patch/field-tree.ts";
import { invalid, StatusError } from "../status-error.ts";
import type { World } from "./world.ts";

type ManagedFields = NonNullable<ObjectMeta["managedFields"]>;
type Entry = ManagedFields[number];

/** Who applies a configuration, and whether over what others have applied. */
export interface Applier {
  readonly manager: string;
  readonly force: boolean;
}

export function readApplier(query: URLSearchParams): Applier {
  const manager = query.get("fieldManager") ?? "";
  if (manager !== "") return { manager, force: query.get("force") === "true" };
  const problems = new ProblemList();
  problems.required("fieldManager", "is required for apply patch");
  throw invalid({ group: "meta.k8s.io", kind: "PatchOptions", plural: "" }, "", problems.problems);
}

export interface Applied {
  readonly object: JsonObject;
  /** Who owns which fields from now on. */
  readonly managedFields: ManagedFields;
}

/**
 * Server-side apply: what the configuration names is set, what its manager named before and names no more is removed
 * unless another manager has applied it too. Only what was applied has an owner; other writes take nothing away.
 */
export function applyTo(
  world: World,
  kind: Kind,
  subresource: string,
  current: ApiObject | undefined,
  configuration: JsonObject,
  { manager, force }: Applier,
): Applied {
  const named = namedFields(configuration, kind);
  const isOwn = (entry: Entry): boolean => entry.manager === manager && (entry.subresource ?? "") === subresource;
  const entries = current?.metadata.managedFields ?? [];
  const others = entries.filter((entry) => !isOwn(entry));
  if (current !== undefined && !force) refuseConflicts(others, named, configuration, current);
  const own: Entry = {
    manager,
    operation: "Apply",
    apiVersion: apiVersionOf(kind),
    time: apiTime(world.clock.now()),
    fieldsType: "FieldsV1",
    fieldsV1: named,
    ...(subresource !== "" && { subresource }),
  };
  const managedFields = [...others.flatMap((entry) => (force ? lessOf(entry, named) : entry)), own];
  if (current === undefined) return { object: configuration, managedFields };
  const merged = applyConfiguration(current, configuration, kind.schema);
  const before = entries.find(isOwn);
  const dropped = before === undefined ? undefined : without(treeOf(before), named);
  const unowned = others.reduce((tree, entry) => tree && without(tree, treeOf(entry)), dropped);
  const object = unowned === undefined ? merged : (removeFields(merged, unowned) as JsonObject);
  // The same configuration once more is no change, whatever the time.
  const isSame = before !== undefined && JSON.stringify(before.fieldsV1) === JSON.stringify(named);
  return { object, managedFields: isSame && !force ? entries : managedFields };
}

/** All but what says which object is meant. */
function namedFields(configuration: JsonObject, kind: Kind): FieldTree {
  const { apiVersion, kind: _kind, metadata, ...rest } = configuration;
  const { name, namespace, ...kept } = isObject(metadata) ? metadata : {};
  const meant = Object.keys(kept).length === 0 ? rest : { metadata: kept, ...rest };
  return fieldTree(meant, { form: "object", type: kind.schema });
}

const treeOf = (entry: Entry): FieldTree => (entry.fieldsV1 ?? {}) as FieldTree;

function lessOf(entry: Entry, named: FieldTree): readonly Entry[] {
  const left = without(treeOf(entry), named);
  return left === undefined ? [] : [{ ...entry, fieldsV1: left }];
}

function refuseConflicts(others: readonly Entry[], named: FieldTree, wanted: JsonObject, current: ApiObject): void {
  const conflicts = others.flatMap((entry) => {
    const shared = common(named, treeOf(entry));
    const fields = shared === undefined ? [] : differing(shared, wanted, current);
    return fields.map((field) => ({ manager: entry.manager ?? "", field }));
  });
  if (conflicts.length === 0) return;
  const causes = conflicts.map(({ manager, field }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with "${manager}"`,
    field,
  }));
  const [first] = conflicts;
  const message =
    conflicts.length === 1
      ? `Apply failed with 1 conflict: conflict with "${first?.manager}": ${first?.field}`
      : `Apply failed with ${conflicts.length} conflicts: ${conflictList(conflicts)}`;
  throw new StatusError(409, "Conflict", message, { causes });
}

function conflictList(conflicts: readonly { readonly manager: string; readonly field: string }[]): string {
  const fields = new Map<string, string[]>();
  for (const { manager, field } of conflicts) {
    const known = fields.get(manager);
    if (known === undefined) fields.set(manager, [field]);
    else known.push(field);
  }
  return [...fields].map(([manager, own]) => `conflicts with "${manager}":\n- ${own.join("\n- ")}`).join("\n");
}
