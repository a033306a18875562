// Fails when a file of src/ imports against the direction in import-rules.mjs, or enters another folder
// other than through its index.ts.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative, sep } from "node:path";
import { allowedImports } from "./import-rules.mjs";

const importPattern = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"(\.[^"]+)"|import\(\s*"(\.[^"]+)"\s*\)/g;

/** The folder of the rules that a file lies in, "pod/workers" or "agent"; undefined for one that the rules do not know. */
function folderOf(file) {
  return Object.keys(allowedImports).find((folder) => file === folder || file.startsWith(join(folder, sep)));
}

/** Problems of one file; `file` is relative to src/. */
export function importProblems(file, text) {
  const isTest = file.endsWith(".test.ts");
  const own = folderOf(file);
  if (own === undefined) return [`${file} lies in no folder that scripts/import-rules.mjs knows`];
  const problems = [];
  for (const match of text.matchAll(importPattern)) {
    const target = normalize(join(dirname(file), match[1] ?? match[2]));
    if (target.startsWith("..")) {
      if (!isTest) problems.push(`${file} imports ${target}, which is outside src/`);
      continue;
    }
    const folder = folderOf(target) ?? dirname(target);
    if (folder === own || isTest) continue;
    if (!allowedImports[own].includes(folder)) problems.push(`${file} may not import from ${folder}/`);
    else if (target !== join(folder, "index.ts")) problems.push(`${file} must enter ${folder}/ through its index.ts`);
  }
  return problems;
}

export function checkTree(root = "src") {
  const files = readdirSync(root, { recursive: true }).filter((file) => file.endsWith(".ts"));
  return files.flatMap((file) => importProblems(file, readFileSync(join(root, file), "utf8")));
}

if (process.argv[1] && relative(process.argv[1], new URL(import.meta.url).pathname) === "") {
  const problems = checkTree();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
