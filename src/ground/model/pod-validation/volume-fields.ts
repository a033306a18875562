import type { DownwardAPIVolumeFile, KeyToPath, LocalObjectReference, Volume } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkFieldRef, checkResourceFieldRef } from "./env.ts";
import { fileMode } from "./names.ts";
import { checkNonReservedPath } from "./paths.ts";

export interface CheckedVolume {
  /** Path of the volume itself. */
  readonly path: string;
  readonly podName: string;
}

/** The rules of one kind of volume; called only when that kind is set. */
export type VolumeCheck = (volume: Volume, place: CheckedVolume, problems: ProblemList) => void;

/** Texts and lists that must not be empty. */
export function requireFields<Source extends object>(
  source: Source | undefined,
  names: readonly (keyof Source & string)[],
  path: string,
  problems: ProblemList,
): void {
  for (const name of names) {
    const value = source?.[name];
    if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) {
      problems.required(`${path}.${name}`);
    }
  }
}

export function checkSecretRef(ref: LocalObjectReference | undefined, path: string, problems: ProblemList): void {
  if (ref !== undefined && !ref.name) problems.required(path);
}

export function checkMode(mode: number | undefined, path: string, problems: ProblemList): void {
  if (mode !== undefined) problems.invalidEach(path, mode, fileMode(mode));
}

export function checkItems(items: readonly KeyToPath[], path: string, problems: ProblemList): void {
  for (const [index, { key, path: target, mode }] of items.entries()) {
    const at = `${path}[${index}]`;
    if (key === "") problems.required(`${at}.key`);
    if (target === "") problems.required(`${at}.path`);
    checkNonReservedPath(target, `${at}.path`, problems);
    checkMode(mode, `${at}.mode`, problems);
  }
}

export function checkDownwardFile(file: DownwardAPIVolumeFile, path: string, problems: ProblemList): void {
  const { fieldRef, resourceFieldRef } = file;
  if (file.path === "") problems.required(`${path}.path`);
  checkNonReservedPath(file.path, `${path}.path`, problems);
  if (fieldRef !== undefined) checkFieldRef(fieldRef, "volume", `${path}.fieldRef`, problems);
  if (resourceFieldRef !== undefined) {
    checkResourceFieldRef(resourceFieldRef, "volume", `${path}.resourceFieldRef`, problems);
  }
  if (fieldRef !== undefined && resourceFieldRef !== undefined) {
    problems.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
  }
  if (fieldRef === undefined && resourceFieldRef === undefined) {
    problems.required(path, "one of fieldRef and resourceFieldRef is required");
  }
  checkMode(file.mode, `${path}.mode`, problems);
}
