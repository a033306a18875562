import assert from "node:assert/strict";
import { test } from "node:test";
import { manPage } from "./man-page.ts";
import { shownCommands } from "./table/commands.ts";

const page = manPage(shownCommands, "1.2.3");

test("the manual has every command with every option", () => {
  for (const { name, options } of shownCommands) {
    const from = page.indexOf(`.SS nodelet ${name.replaceAll("-", "\\-")}\n`);
    assert.ok(from > 0, name);
    const section = page.slice(from, page.indexOf("\n.S", from + 1));
    for (const option of Object.keys(options))
      assert.ok(section.includes(`\\-\\-${option.replaceAll("-", "\\-")}`), option);
  }
});

test("no line is taken for a request that is none", () => {
  const requests = new Set([".TH", ".SH", ".SS", ".TP", ".B", ".br", ".nf", ".fi", ".PP"]);
  for (const line of page.split("\n")) {
    if (/^[.']/.test(line)) assert.ok(requests.has(line.split(" ")[0] ?? ""), line);
  }
  const odd = {
    name: "x",
    group: "node",
    summary: "",
    description: ".so /etc/passwd\n'x \\n",
    options: {},
    examples: [],
  };
  assert.match(manPage([{ ...odd, group: "node" }], "1"), /\n\\&\.so \/etc\/passwd\n\\&'x \\en\n/);
});
