import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { helpCommand } from "./help-command.ts";
import type { OtherProcesses } from "./load-command.ts";
import { runCommand } from "./run-command.ts";
import { findCommand, shownCommands } from "./table/commands.ts";

const processes: OtherProcesses = {
  apiServer: async () => 70,
  runOnce: async () => 71,
  dockershim: async () => 72,
};
const descriptions = shownCommands;

for (const args of [[], ["--"]] as const) {
  test(`help ${args.join(" ")} lists every command`, async () => {
    const { io, stdout, stderr } = recordIo("/");
    assert.equal(await helpCommand(args, io), 0);
    for (const { name, summary } of descriptions) {
      assert.ok(stdout().includes(`\n  ${name.padEnd(11)}`) && stdout().includes(`  ${summary}\n`), name);
    }
    assert.equal(stderr(), "");
  });
}

for (const { name, options, examples, description } of descriptions) {
  const words = name.split(" ");
  test(`nodelet ${name} --help, -h and nodelet help ${name} say the same, and all of the table`, async () => {
    const said = await Promise.all(
      [
        [...words, "--help"],
        [...words, "-h"],
        ["help", ...words],
      ].map(async (line) => {
        const { io, stdout, stderr } = recordIo("/");
        assert.equal(await runCommand(line, io, processes), 0);
        assert.equal(stderr(), "");
        return stdout();
      }),
    );
    const [help = ""] = said;
    assert.deepEqual(said, [help, help, help]);
    assert.ok(help.startsWith(`usage: nodelet ${name}`));
    assert.ok(help.replace(/\s+/g, " ").includes(description));
    for (const option of Object.keys(options)) assert.ok(help.includes(`--${option}`), option);
    for (const { line } of examples) assert.ok(help.includes(`  nodelet ${line}`), line);
    for (const line of help.split("\n")) assert.ok(line.length <= 120, line);
  });

  test(`examples of ${name} are called as the table says`, () => {
    for (const { line } of examples) assert.equal(findCommand(line.split(" "))?.name, name);
  });
}

for (const { name, options, operands = [] } of descriptions) {
  const output = options["output"];
  if (output === undefined) continue;
  test(`nodelet ${name} -o says what it takes: in its help, and when it is given something else`, async () => {
    assert.ok(output.type === "choice" && output.short === "o");
    const help = recordIo("/");
    assert.equal(await runCommand([...name.split(" "), "--help"], help.io, processes), 0);
    assert.ok(help.stdout().includes(`  -o, --output ${output.values.join("|")}`));
    const { io, stderr } = recordIo("/");
    const needed = [
      ...operands.filter(({ presence }) => presence === "required").map(() => "x"),
      ...(options["dry-run"] ? ["--dry-run"] : []),
    ];
    assert.equal(await runCommand([...name.split(" "), ...needed, "-o", "xml"], io, processes), 2);
    assert.ok(stderr().startsWith(`nodelet ${name}: --output wants ${output.values.join(" or ")}, found "xml"\n`));
  });
}

test("names are given once, one letter means one option, choices know their default", () => {
  const names = descriptions.map(({ name }) => name);
  assert.deepEqual(names, [...new Set(names)]);
  for (const { name, options, summary } of descriptions) {
    assert.doesNotMatch(summary, /\.$|\n/, name);
    const shorts = Object.values(options).flatMap(({ short }) => short ?? []);
    assert.deepEqual(shorts, [...new Set(shorts)], name);
    assert.ok(!shorts.includes("h") && !Object.hasOwn(options, "help"), name);
    for (const option of Object.values(options)) {
      if (option.type === "choice") assert.ok(option.values.includes(option.default), name);
    }
  }
});

test("docs/commands.md has a row for every command", () => {
  const page = readFileSync(new URL("../../../docs/commands.md", import.meta.url), "utf8");
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  for (const { name } of descriptions) {
    const named = new RegExp(`\`${name.split(" ")[0]}[ \`]`);
    assert.ok(
      rows.some((row) => named.test(row)),
      name,
    );
  }
});

for (const { typed, meant } of [
  { typed: "dwon", meant: "down" },
  { typed: "pu", meant: "up" },
  { typed: "conf", meant: "config" },
  { typed: "Version", meant: "version" },
  { typed: "apiserver", meant: "api-server" },
  { typed: "config dif", meant: "config diff" },
  { typed: "config frobnicate", meant: undefined },
  { typed: "frobnicate", meant: undefined },
  { typed: "x".repeat(1_000_000), meant: undefined },
]) {
  test(`"${typed.slice(0, 20)}" may be meant for ${meant ?? "nothing"}`, async () => {
    for (const words of [typed.split(" "), ["help", ...typed.split(" ")]]) {
      const { io, stderr } = recordIo("/");
      assert.equal(await runCommand(words, io, processes), 1);
      const [first = "", second] = stderr().split("\n");
      assert.equal(first.startsWith(`nodelet: unknown command ${typed.slice(0, 100)}`), true);
      assert.equal(/did you mean "nodelet (.*)"\?/.exec(first)?.[1], meant);
      assert.equal(second, '"nodelet help" lists the commands.');
    }
  });
}

test("what is typed wrong is shown as it is, not obeyed", async () => {
  const { io, stderr } = recordIo("/");
  assert.equal(await runCommand(["\x1b[2J\u202e"], io, processes), 1);
  assert.match(stderr(), /unknown command \^\[\[2J<U\+202E>\n/);
});

test("processes of their own get their words", async () => {
  assert.equal(await runCommand(["run-once", "--timeout=5"], recordIo("/").io, processes), 71);
});
