import { ProblemList } from "../../../ground/model/index.ts";
import { isObject, objectAt } from "../json.ts";
import type { DeleteOptions } from "../rest/delete.ts";
import type { User, WriteOptions } from "../rest/world.ts";
import { invalid, type StatusError } from "../status-error.ts";

export function writeOptions(user: User, query: URLSearchParams, warn: (message: string) => void): WriteOptions {
  const dryRun = query.getAll("dryRun").filter((value) => value !== "");
  if (dryRun.some((value) => value !== "All")) throw unsupported("dryRun", dryRun, ["All"]);
  return { user, dryRun: dryRun.length > 0, unknownFields: unknownFieldsOf(query.get("fieldValidation")), warn };
}

function unknownFieldsOf(fieldValidation: string | null): WriteOptions["unknownFields"] {
  switch (fieldValidation ?? "") {
    case "Strict":
      return "refuse";
    case "":
    case "Warn":
      return "warn";
    case "Ignore":
      return "ignore";
    default:
      throw unsupported("fieldValidation", fieldValidation, ["", "Ignore", "Strict", "Warn"]);
  }
}

function unsupported(field: string, found: unknown, supported: readonly string[]): StatusError {
  const problems = new ProblemList();
  problems.unsupported(field, found, supported);
  return invalid({ group: "meta.k8s.io", kind: "CreateOptions", plural: "" }, "", problems.problems);
}

/** From the body of a DELETE, or from its address. */
export function readDeleteOptions(body: unknown, query: URLSearchParams): DeleteOptions & { readonly dryRun: boolean } {
  const given = isObject(body) ? body : {};
  const { uid, resourceVersion } = objectAt(given, "preconditions");
  const grace = given["gracePeriodSeconds"] ?? numberIn(query.get("gracePeriodSeconds"));
  const propagation = given["propagationPolicy"] ?? query.get("propagationPolicy");
  const orphans = given["orphanDependents"] === true || query.get("orphanDependents") === "true";
  return {
    ...(typeof grace === "number" && { gracePeriodSeconds: grace }),
    ...(typeof uid === "string" && { uid }),
    ...(typeof resourceVersion === "string" && { resourceVersion }),
    ...(isPropagation(propagation) ? { propagation } : orphans ? { propagation: "Orphan" as const } : {}),
    dryRun: Array.isArray(given["dryRun"]) && given["dryRun"].includes("All"),
  };
}

function numberIn(text: string | null): number | undefined {
  return text !== null && /^-?\d+$/.test(text) ? Number(text) : undefined;
}

function isPropagation(value: unknown): value is NonNullable<DeleteOptions["propagation"]> {
  return value === "Orphan" || value === "Background" || value === "Foreground";
}
