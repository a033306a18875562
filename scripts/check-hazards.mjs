// Fails when a file of src/ does what hazard-rules.mjs forbids.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { hazards } from "./hazard-rules.mjs";

/** Problems of one file; `file` is relative to src/. Tests and generated code may do as they like. */
export function hazardProblems(file, text, rules = hazards) {
  if (file.endsWith(".test.ts") || file.includes("/gen/")) return [];
  const code = withoutComments(text);
  return rules.flatMap(({ name, find, instead, allowed }) => {
    if (Object.keys(allowed).some((place) => file === place || (place.endsWith("/") && file.startsWith(place))))
      return [];
    return find(code).map((index) => {
      const line = code.slice(0, index).split("\n").length;
      return `src/${file}:${line}: ${name}: ${instead}`;
    });
  });
}

/** Places that the rules allow and that need it no more. */
export function idleExceptions(files, rules = hazards) {
  return rules.flatMap(({ name, find, allowed }) =>
    Object.keys(allowed)
      .filter(
        (place) => ![...files].some(([file, text]) => file.startsWith(place) && find(withoutComments(text)).length > 0),
      )
      .map((place) => `scripts/hazard-rules.mjs: "${name}" is allowed in ${place}, where there is none`),
  );
}

/** Blanks, so that lines keep their numbers. */
function withoutComments(text) {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*/g, (comment) => comment.replaceAll(/[^\n]/g, " "));
}

if (process.argv[1] && relative(process.argv[1], new URL(import.meta.url).pathname) === "") {
  const names = readdirSync("src", { recursive: true }).filter((file) => file.endsWith(".ts"));
  const files = new Map(names.map((file) => [file, readFileSync(join("src", file), "utf8")]));
  const problems = [...files].flatMap(([file, text]) => hazardProblems(file, text));
  problems.push(...idleExceptions(files));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
