import { join, resolve } from "node:path";
import { messageOf } from "../../base/index.ts";
import type { ConfigIo, ConfigProblem, ConfigWarning, Origin } from "../agent-config.ts";
import { applyDefaults } from "../defaults.ts";
import type { FieldStore } from "../fields/field-store.ts";
import { fieldPaths, specOf } from "../fields/fields.ts";
import { decodeInto } from "./decode.ts";
import {
  duplicates,
  type FileResult,
  type FlagGates,
  gateProblems,
  gatesOf,
  ignoredDocuments,
  isWantedType,
  readTree,
  typeOf,
  unknownFields,
  wrongValues,
} from "./load-config-file.ts";
import type { Place } from "./tree.ts";

/** Merges the drop-ins of --config-dir into the store, one after the other in the order of a directory walk. */
export async function mergeDropIns(
  store: FieldStore,
  directory: string,
  flagGates: FlagGates,
  io: ConfigIo,
): Promise<FileResult> {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigWarning[] = [];
  const root = resolve(io.cwd, directory);
  const files = await findDropIns(root, io).catch((error: unknown) => {
    const message = `failed to walk through kubelet dropin directory ${JSON.stringify(directory)}: ${messageOf(error)}`;
    problems.push({ message, place: root });
    return undefined;
  });
  if (files === undefined) return { store, problems, warnings };
  if (files === "symlink") {
    const message = `--config-dir ${directory} is a symbolic link, no drop-in is loaded; give the directory it points to`;
    return { store, problems, warnings: [{ kind: "config-file", message }] };
  }
  dropEmptyLists(store, warnings);
  for (const [index, path] of files.entries()) await mergeDropIn(store, path, index + 1, io, problems, warnings);
  problems.push(...gateProblems(store));
  if (problems.length === 0) applyDefaults(store, "file", gatesOf(store, flagGates));
  return { store, problems, warnings };
}

async function mergeDropIn(
  store: FieldStore,
  path: string,
  index: number,
  io: ConfigIo,
  problems: ConfigProblem[],
  warnings: ConfigWarning[],
): Promise<void> {
  const prefix = `failed to load kubelet dropin file, path: ${path}`;
  const read = await readTree(path, io);
  if ("problems" in read) {
    for (const problem of read.problems) problems.push({ ...problem, message: `${prefix}, error: ${problem.message}` });
    return;
  }
  const { tree, parsed } = read;
  const repeated = duplicates(path, parsed);
  if (repeated.length > 0) {
    problems.push({ message: `${prefix}, error: strict decoding error: ${repeated.join(", ")}`, place: path });
  }
  const { apiVersion, kind } = typeOf(tree);
  if (!isWantedType(tree)) {
    const found =
      kind === undefined ? "no apiVersion/kind" : `unknown apiVersion/kind: ${apiVersion ?? ""}, Kind=${kind}`;
    problems.push({ message: `${prefix}, ${found}`, place: path });
    return;
  }
  const originAt = (place: Place): Origin => ({ from: "drop-in", index, path, line: place.line });
  const findings = decodeInto(store, tree, { merge: true, matchesAnyCase: true, originAt });
  problems.push(...wrongValues(path, findings));
  for (const message of unknownFields(path, findings)) warnings.push({ kind: "config-file", message });
  warnings.push(...ignoredDocuments(path, parsed), ...relativePaths(store, path, io));
}

/** Upstream passes the base through JSON, which cannot tell an empty list from none. */
function dropEmptyLists(store: FieldStore, warnings: ConfigWarning[]): void {
  for (const path of fieldPaths) {
    const value = store.get(path);
    const { default: fallback } = specOf(path);
    if (!Array.isArray(value) || value.length > 0 || !Array.isArray(fallback) || fallback.length === 0) continue;
    store.forget(path);
    const message = `${path}: the empty list becomes the default ${JSON.stringify(fallback)} because --config-dir is given; set it in a drop-in instead`;
    warnings.push({ kind: "config-file", message });
  }
}

function relativePaths(store: FieldStore, file: string, io: ConfigIo): ConfigWarning[] {
  return fieldPaths.flatMap((path): ConfigWarning[] => {
    const value = store.get(path);
    const origin = store.originOf(path);
    if (!specOf(path).isPath || origin?.from !== "drop-in" || origin.path !== file) return [];
    if (typeof value !== "string" || value === "" || value.startsWith("/")) return [];
    const message = `${file}:${origin.line}: ${path}: the relative path ${value} of a drop-in starts at the working directory ${io.cwd}`;
    return [{ kind: "config-file", message }];
  });
}

/** The *.conf files below the directory. Links to files are followed, links to directories are not, nor is a linked root. */
export async function findDropIns(root: string, io: ConfigIo): Promise<string[] | "symlink"> {
  const kind = await io.kindOf(root);
  if (kind === "symlink" && !isDropIn(root)) return "symlink";
  if (kind !== "directory") return isDropIn(root) ? [root] : [];
  const found: string[] = [];
  await walk(root);
  return found;

  async function walk(directory: string): Promise<void> {
    const entries = [...(await io.listDir(directory))].sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const { name, kind: entryKind } of entries) {
      const path = join(directory, name);
      if (entryKind === "directory") await walk(path);
      else if (isDropIn(name)) found.push(path);
    }
  }
}

function isDropIn(name: string): boolean {
  return name.endsWith(".conf");
}
