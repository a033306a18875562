import type { Origin } from "../agent-config.ts";
import type { Report } from "../fields/field-kinds.ts";
import type { FieldStore } from "../fields/field-store.ts";
import { type FieldPath, fieldPaths, isFieldPath, specOf } from "../fields/fields.ts";
import { describeTree, type Place, type Tree, type TreeEntry } from "./tree.ts";

/** What a file says that it should not: `wrong` stops the start, `unknown` is a warning. */
export interface Finding {
  readonly kind: "wrong" | "unknown";
  readonly path: string;
  readonly at: Place;
  readonly message: string;
  /** For an unknown field: the names that would be known there. */
  readonly known?: readonly string[];
}

/** How the values of a file enter the store. */
export interface DecodeMode {
  /** Null removes a value and maps join key by key (a drop-in); otherwise null is nothing and maps replace. */
  readonly merge: boolean;
  /** Field names match whatever their case, as in drop-ins of the upstream kubelet. */
  readonly matchesAnyCase: boolean;
  originAt(place: Place): Origin;
}

const typeMeta = ["apiVersion", "kind"];

/** Reads the fields of a whole file into the store and lists what it found wrong. */
export function decodeInto(store: FieldStore, tree: Tree & { kind: "map" }, mode: DecodeMode): Finding[] {
  const findings: Finding[] = [];
  const report: Report = {
    wrong: (path, at, message) => findings.push({ kind: "wrong", path, at: at.at, message }),
    unknown: (path, name, at, known) =>
      findings.push({
        kind: "unknown",
        path: `${path}.${name}`,
        at,
        message: `unknown field "${path}.${name}"`,
        known,
      }),
  };
  decodeStruct("", tree);
  return findings;

  function decodeStruct(prefix: string, map: Tree & { kind: "map" }): void {
    const names = namesBelow(prefix);
    for (const entry of lastOfEachKey(map.entries)) {
      if (prefix === "" && typeMeta.includes(entry.key)) continue;
      if (names.includes(entry.key)) {
        decodeEntry(prefix + entry.key, entry);
        continue;
      }
      const match = mode.matchesAnyCase ? names.find((name) => sameLetters(name, entry.key)) : undefined;
      const isUsed = match !== undefined && winsOver(prefix + match, match, entry.key);
      findings.push({
        kind: "unknown",
        path: prefix + entry.key,
        at: entry.keyAt,
        message: `unknown field "${prefix}${entry.key}"${isUsed ? `, taken for ${prefix}${match}` : ""}`,
        known: isUsed ? [] : names,
      });
      if (isUsed) decodeEntry(prefix + match, entry);
    }
  }

  // Merged JSON is read in the order of its keys, and the last spelling of a field stays.
  function winsOver(path: string, name: string, spelling: string): boolean {
    return spelling > name || !fieldPaths.some((field) => isWithin(field, path) && store.has(field));
  }

  function decodeEntry(path: string, { value }: TreeEntry): void {
    if (value.kind === "null") {
      if (mode.merge) store.forget(path);
    } else if (isFieldPath(path)) decodeField(path, value);
    else if (value.kind === "map") {
      store.markPresent(path);
      decodeStruct(`${path}.`, value);
    } else report.wrong(path, value, `wanted a map of fields, found ${describeTree(value)}`);
  }

  function decodeField(path: FieldPath, tree: Tree): void {
    const { kind } = specOf(path);
    const isMap = typeof kind.zero === "object" && !Array.isArray(kind.zero);
    const present = tree.kind === "map" && mode.merge ? withoutNulls(tree) : tree;
    const value = kind.decode(present, path, report);
    if (value === undefined) return;
    if (isMap && tree.kind === "map") decodeKeys(path, tree, value as Readonly<Record<string, unknown>>);
    else store.set(path, value, mode.originAt(tree.at));
  }

  function decodeKeys(path: FieldPath, tree: Tree & { kind: "map" }, values: Readonly<Record<string, unknown>>): void {
    if (!mode.merge || !store.has(path)) store.set(path, {}, mode.originAt(tree.at));
    for (const { key, keyAt, value } of lastOfEachKey(tree.entries)) {
      if (mode.merge && value.kind === "null") store.forgetKey(path, key);
      else if (Object.hasOwn(values, key)) store.setKey(path, key, values[key], mode.originAt(keyAt));
    }
  }
}

function withoutNulls(map: Tree & { kind: "map" }): Tree {
  return { ...map, entries: map.entries.filter((entry) => entry.value.kind !== "null") };
}

function lastOfEachKey(entries: readonly TreeEntry[]): TreeEntry[] {
  return [...new Map(entries.map((entry) => [entry.key, entry])).values()];
}

/** The names one level below "", "authentication." and so on. */
function namesBelow(prefix: string): string[] {
  const below = fieldPaths.filter((path) => path.startsWith(prefix));
  return [...new Set(below.map((path) => path.slice(prefix.length).split(".", 1)[0] ?? ""))];
}

function isWithin(field: FieldPath, path: string): boolean {
  return field === path || field.startsWith(`${path}.`);
}

function sameLetters(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
