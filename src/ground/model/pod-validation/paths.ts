import type { ProblemList } from "../problem.ts";

/** A path below some directory: relative, and never leading out of it. */
export function checkDescendingPath(target: string, path: string, problems: ProblemList): void {
  if (target.startsWith("/")) problems.invalid(path, target, "must be a relative path");
  checkNoBacksteps(target, path, problems);
}

export function checkNoBacksteps(target: string, path: string, problems: ProblemList): void {
  if (target.split("/").includes("..")) problems.invalid(path, target, "must not contain '..'");
}

/** A path of a file that the agent writes into a volume; names that begin with `..` are the agent's own. */
export function checkNonReservedPath(target: string, path: string, problems: ProblemList): void {
  checkDescendingPath(target, path, problems);
  if (target.startsWith("..") && !target.startsWith("../")) problems.invalid(path, target, "must not start with '..'");
}
