// The agent is built before it starts: whatever a part is handed exists by then. These checks read the sources.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";

const directory = join(process.cwd(), "src", "agent");

interface SourceFunction {
  readonly place: string;
  readonly lines: readonly string[];
}

const files = readdirSync(directory)
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => ({ name, text: readFileSync(join(directory, name), "utf8") }));

/** Functions and methods, by the indentation of their first and last lines. */
function functionsOf({ name, text }: (typeof files)[number]): readonly SourceFunction[] {
  const lines = text.split("\n");
  return lines.flatMap((line, start) => {
    const indent = /^( *)(?:export )?(?:async )?(?:function\b|(?:static )?(?:async )?[#\w]+\(.*\{$|constructor\()/.exec(
      line,
    )?.[1];
    // What ends in the middle of its arguments is a call.
    const isOther = /^\s*(?:if|for|while|switch|return)\b|^(?!.*\bfunction\b).*[,(] ?\{$/.test(line);
    if (indent === undefined || indent.length > 2 || isOther) return [];
    const length = lines.slice(start).findIndex((each, offset) => offset > 0 && each === `${indent}}`);
    return length < 0 ? [] : [{ place: `${name}:${start + 1}`, lines: lines.slice(start, start + length + 1) }];
  });
}

const functions = files.flatMap(functionsOf);

/** Names that a function declares at the top of its body, with the line on which each comes into being. */
function declarations({ lines }: SourceFunction): readonly { readonly name: string; readonly line: number }[] {
  const indent = `${/^ */.exec(lines[0] ?? "")?.[0] ?? ""}  `;
  return lines.flatMap((line, at) => {
    const found = new RegExp(`^${indent}(?:const|let) (?:(\\w+)|\\{ ([^}]*) \\})`).exec(line);
    const names = found?.[1] ?? found?.[2]?.replace(/\w+: /g, "") ?? "";
    return names.split(/,\s*/).flatMap((name) => (/^\w+$/.test(name) ? [{ name, line: at }] : []));
  });
}

/** Without what only looks like a use of a name: text, comments, properties. */
function bare(line: string): string {
  return line
    .replace(/\/\/.*|^\s*\*.*|\/\*.*/, "")
    .replace(/"[^"]*"|`[^`]*`/g, '""')
    .replace(/\.#?\w+/g, "")
    .replace(/\b\w+\??:/g, "");
}

test("the checks see the functions of this folder", () => {
  assert.ok(functions.some(({ place }) => place.startsWith("build-agent.ts")));
  assert.ok(functions.length > 50, `${functions.length}`);
});

test("a name that is declared later is found, in a closure too", () => {
  const lines = ["function f() {", "  const a = () => later;", "  const later = 1;", "}"];
  assert.deepEqual(usesBefore({ place: "x", lines }), ["x: later"]);
  assert.deepEqual(usesBefore({ place: "x", lines: ["function f() {", "  const a = 1;", "  use(a);", "}"] }), []);
});

function usesBefore(source: SourceFunction): readonly string[] {
  return declarations(source).flatMap(({ name, line }) => {
    const before = source.lines.slice(1, line).map(bare);
    return before.some((each) => new RegExp(`\\b${name}\\b`).test(each)) ? [`${source.place}: ${name}`] : [];
  });
}

test("nothing uses what is only declared later, not even in a closure", () => {
  assert.deepEqual(functions.flatMap(usesBefore), []);
});

test("what is built is not replaced: no variable that is set later", () => {
  const builders = functions.filter(({ lines: [first = ""] }) => /function (?:build|lay)/.test(first));
  assert.ok(builders.length > 15);
  const variables = builders.filter(({ lines }) => lines.some((line) => /^\s*let /.test(line)));
  assert.deepEqual(
    variables.map(({ place }) => place),
    [],
  );
});
