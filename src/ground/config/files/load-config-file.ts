import { dirname, join, resolve } from "node:path";
import { messageOf } from "../../base/index.ts";
import type { ConfigIo, ConfigProblem, ConfigWarning, Origin } from "../agent-config.ts";
import { applyDefaults, applyEvictionDefaults } from "../defaults.ts";
import { keyPath } from "../fields/field-kinds.ts";
import { FieldStore } from "../fields/field-store.ts";
import { fieldPaths, specOf } from "../fields/fields.ts";
import { GateSet } from "../gates/gates.ts";
import { hint } from "../text/nearest.ts";
import { decodeInto, type Finding } from "./decode.ts";
import { type ParsedFile, parseFile } from "./parse-file.ts";
import { entryOf, type Place, type Tree } from "./tree.ts";

export type FlagGates = Readonly<Record<string, boolean>>;

/** What came of reading files. */
export interface FileResult {
  readonly store: FieldStore;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigWarning[];
}

const group = "kubelet.config.k8s.io";
const wantedVersion = `${group}/v1beta1`;
const wantedKind = "KubeletConfiguration";

/** Reads the --config file and fills in the defaults that go with one. */
export async function loadConfigFile(name: string, flagGates: FlagGates, io: ConfigIo): Promise<FileResult> {
  const path = resolve(io.cwd, name);
  const store = new FieldStore();
  const read = await readTree(path, io);
  if ("problems" in read) return { store, problems: read.problems, warnings: [] };
  const { tree, parsed } = read;
  const problem = typeProblem(path, tree);
  if (problem !== undefined) return { store, problems: [problem], warnings: [] };

  const originAt = (place: Place): Origin => ({ from: "file", path, line: place.line });
  const findings = decodeInto(store, tree, { merge: false, matchesAnyCase: false, originAt });
  const problems = [...wrongValues(path, findings), ...gateProblems(store)];
  const warnings = [...duplicates(path, parsed), ...unknownFields(path, findings)].map(lenient);
  if (problems.length > 0) return { store, problems, warnings: [...warnings, ...ignoredDocuments(path, parsed)] };

  applyDefaults(store, "file", gatesOf(store, flagGates));
  resolvePaths(store, dirname(path));
  applyEvictionDefaults(store);
  return { store, problems, warnings: [...warnings, ...ignoredDocuments(path, parsed)] };
}

/** The gates that count while defaults are filled in. */
export function gatesOf(store: FieldStore, flagGates: FlagGates): GateSet {
  const gates = new GateSet();
  gates.set(store.get("featureGates") ?? {});
  gates.set(flagGates);
  return gates;
}

/** FlagGates of the files that do not exist or are locked. The upstream kubelet panics here. */
export function gateProblems(store: FieldStore): ConfigProblem[] {
  return new GateSet().set(store.get("featureGates") ?? {}).map(({ gate, message }) => {
    const field = keyPath("featureGates", gate);
    const place = placeOf(store.originOf(field));
    return { message, field, ...(place === undefined ? {} : { place }) };
  });
}

export function placeOf(origin: Origin | undefined): string | undefined {
  switch (origin?.from) {
    case "file":
    case "drop-in":
      return `${origin.path}:${origin.line}`;
    case "flag":
      return `--${origin.flag}`;
    default:
      return undefined;
  }
}

type ReadTree =
  | { readonly tree: Tree & { kind: "map" }; readonly parsed: ParsedFile }
  | { readonly problems: readonly ConfigProblem[] };

/** The file as a map, or what keeps it from being one. */
export async function readTree(path: string, io: ConfigIo): Promise<ReadTree> {
  let bytes: Uint8Array;
  try {
    bytes = await io.readFile(path);
  } catch (error) {
    const message = `failed to read kubelet config file ${JSON.stringify(path)}, error: ${messageOf(error)}`;
    return { problems: [{ message, place: path }] };
  }
  if (bytes.length === 0) {
    return { problems: [{ message: `kubelet config file ${JSON.stringify(path)} was empty`, place: path }] };
  }
  const parsed = await parseFile(bytes);
  const broken = parsed.findings.filter((finding) => finding.kind === "broken");
  if (broken.length > 0 || parsed.tree === undefined) {
    return {
      problems: broken.map(({ message, at }) => ({
        message: `failed to decode: ${message}`,
        place: spot(path, at),
      })),
    };
  }
  if (parsed.tree.kind !== "map") {
    const message = `failed to decode: Object 'Kind' is missing; wanted a map with apiVersion: ${wantedVersion} and kind: ${wantedKind}`;
    return { problems: [{ message, place: spot(path, parsed.tree.at) }] };
  }
  return { tree: parsed.tree, parsed };
}

function typeProblem(path: string, tree: Tree & { kind: "map" }): ConfigProblem | undefined {
  const { kind, apiVersion, at } = typeOf(tree);
  const wanted = `wanted apiVersion: ${wantedVersion} and kind: ${wantedKind}`;
  if (kind === undefined) return { message: `failed to decode: Object 'Kind' is missing; ${wanted}`, place: path };
  if (apiVersion === undefined) {
    return { message: `failed to decode: Object 'apiVersion' is missing; ${wanted}`, place: path };
  }
  if (isWantedType(tree)) return undefined;
  const found = `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`;
  return { message: `failed to decode: ${found}; ${wanted}`, place: spot(path, at) };
}

export function typeOf(tree: Tree & { kind: "map" }): {
  readonly apiVersion: string | undefined;
  readonly kind: string | undefined;
  readonly at: Place;
} {
  const read = (key: string): string | undefined => {
    const value = entryOf(tree, key)?.value;
    return value?.kind === "string" && value.value !== "" ? value.value : undefined;
  };
  const at = (entryOf(tree, "apiVersion") ?? entryOf(tree, "kind"))?.value.at ?? tree.at;
  return { apiVersion: read("apiVersion"), kind: read("kind"), at };
}

export function isWantedType(tree: Tree & { kind: "map" }): boolean {
  const { apiVersion, kind } = typeOf(tree);
  return apiVersion === wantedVersion && kind === wantedKind;
}

export function wrongValues(path: string, findings: readonly Finding[]): ConfigProblem[] {
  return findings
    .filter((finding) => finding.kind === "wrong")
    .map(({ path: field, at, message }) => ({ message: `${field}: ${message}`, field, place: spot(path, at) }));
}

export function unknownFields(path: string, findings: readonly Finding[]): string[] {
  return findings
    .filter((finding) => finding.kind === "unknown")
    .map(({ path: field, at, message, known }) => {
      const name = field.split(".").at(-1) ?? "";
      return `${spot(path, at)}: ${message}${hint(name, known ?? [])}`;
    });
}

export function duplicates(path: string, parsed: ParsedFile): string[] {
  return parsed.findings
    .filter((finding) => finding.kind === "duplicate")
    .map(({ at, message }) => `${spot(path, at)}: ${message}`);
}

export function ignoredDocuments(path: string, parsed: ParsedFile): ConfigWarning[] {
  return parsed.findings
    .filter((finding) => finding.kind === "ignored-document")
    .map(({ at, message }) => ({ kind: "config-file", message: `${spot(path, at)}: ${message}` }));
}

function lenient(finding: string): ConfigWarning {
  return { kind: "config-file", message: `Using lenient decoding as strict decoding failed: ${finding}` };
}

function resolvePaths(store: FieldStore, directory: string): void {
  for (const path of fieldPaths) {
    if (!specOf(path).isPath) continue;
    const value = store.get(path);
    const origin = store.originOf(path);
    if (typeof value !== "string" || origin === undefined || value === "" || value.startsWith("/")) continue;
    store.set(path, join(directory, value), origin);
  }
}

function spot(path: string, at: Place): string {
  return `${path}:${at.line}:${at.column}`;
}
