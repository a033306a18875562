// Fails when a file of src/ imports against the directions in import-rules.mjs, enters another folder, or a subfolder
// that has one, other than through its index.ts, passes on all that another file exports, or exports a name that another
// file exports too.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize, relative, sep } from "node:path";
import { allowedImports, importsInside, lazyImports } from "./import-rules.mjs";

const importPattern = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"(\.[^"]+)"|import\(\s*"(\.[^"]+)"\s*\)/g;

/** The folder of the rules that a file lies in, "pod/workers" or "agent"; undefined for one that the rules do not know. */
function folderOf(file) {
  return Object.keys(allowedImports).find((folder) => file === folder || file.startsWith(join(folder, sep)));
}

/** The part of its folder that a file lies in: the subfolder's name, or "." for a file beside the subfolders. */
function partOf(file, folder) {
  const [part, ...rest] = relative(folder, file).split(sep);
  return rest.length === 0 ? "." : part;
}

/** The index.ts by which `target` has to be entered from `file`, where both are in one folder and there is one. */
function entranceTo(target, file, indexes) {
  // Generated code is one part with whatever reads it.
  if (target.includes(`${sep}gen${sep}`)) return undefined;
  for (let above = dirname(target); above !== "."; above = dirname(above)) {
    if (file.startsWith(join(above, sep))) return undefined;
    if (indexes.has(join(above, "index.ts"))) return join(above, "index.ts");
  }
  return undefined;
}

/** Problems of one file; `file` is relative to src/, `indexes` are the index.ts that there are. */
export function importProblems(file, text, indexes = new Set()) {
  const isTest = file.endsWith(".test.ts");
  const own = folderOf(file);
  if (own === undefined) return [`${file} lies in no folder that scripts/import-rules.mjs knows`];
  const problems = [];
  if (!file.includes(`${sep}gen${sep}`) && /^export \* /m.test(text))
    problems.push(`${file} must name what it exports`);
  for (const match of text.matchAll(importPattern)) {
    const target = normalize(join(dirname(file), match[1] ?? match[2]));
    if (target.startsWith("..")) {
      if (!isTest) problems.push(`${file} imports ${target}, which is outside src/`);
      continue;
    }
    if (isTest) continue;
    const folder = folderOf(target) ?? dirname(target);
    if (folder === own) problems.push(...problemsInside(own, file, target, indexes));
    else if (!mayImport(own, folder, match)) problems.push(`${file} may not import from ${folder}/`);
    else if (target !== join(folder, "index.ts")) problems.push(`${file} must enter ${folder}/ through its index.ts`);
  }
  return problems;
}

/** Types cost nothing: they may come from where code may only come lazily. */
function mayImport(own, folder, [statement, fixed]) {
  if (allowedImports[own].includes(folder)) return true;
  const isLazy = fixed === undefined || /^\s*(?:import|export) type\s/.test(statement);
  return isLazy && (lazyImports[own] ?? []).includes(folder);
}

/** Problems of an import within one folder. */
function problemsInside(folder, file, target, indexes) {
  const [from, to] = [partOf(file, folder), partOf(target, folder)];
  const allowed = importsInside[folder]?.[from];
  if (from !== to && allowed !== undefined && !allowed.includes(to)) {
    return [`${file} may not import from ${to === "." ? `the files of ${folder}/` : `${folder}/${to}/`}`];
  }
  const entrance = entranceTo(target, file, indexes);
  return entrance === undefined || entrance === target
    ? []
    : [`${file} must enter ${dirname(entrance)}/ through its index.ts`];
}

const exportPattern = /^export (?:async )?(?:abstract )?(?:function\*?|class|const|type|interface) (\w+)/gm;

/** Names that several files export, so that a jump by name may land in the wrong room. `files` are texts by path. */
export function sharedNames(files) {
  const homes = new Map();
  for (const [file, text] of files) {
    if (file.endsWith(".test.ts") || file.includes(`${sep}gen${sep}`)) continue;
    for (const [, name] of text.matchAll(exportPattern)) homes.set(name, (homes.get(name) ?? new Set()).add(file));
  }
  return [...homes]
    .filter(([, found]) => found.size > 1)
    .map(([name, found]) => `${[...found].join(" and ")} export a ${name} each`);
}

export function checkTree(root = "src") {
  const names = readdirSync(root, { recursive: true }).filter((file) => file.endsWith(".ts"));
  const files = new Map(names.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const indexes = new Set(names.filter((file) => basename(file) === "index.ts"));
  return [...[...files].flatMap(([file, text]) => importProblems(file, text, indexes)), ...sharedNames(files)];
}

if (process.argv[1] && relative(process.argv[1], new URL(import.meta.url).pathname) === "") {
  const problems = checkTree();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
