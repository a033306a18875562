import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { type CompletionSource, completeLine } from "./complete-line.ts";
import { completionCommand } from "./completion-command.ts";
import { shownCommands } from "./table/commands.ts";

const asked: (string | undefined)[] = [];
const source: CompletionSource = {
  pods: async (rootDir) => {
    asked.push(rootDir);
    return ["web", "shop/db", "other/db", "evil$(reboot)", "evil\nline"];
  },
  containers: async (pod) => (pod === "web" ? ["main", "proxy"] : []),
};

for (const { line, words } of [
  { line: "wh", words: ["why"] },
  { line: "why ", words: ["web", "shop/db", "other/db"] },
  { line: "why s", words: ["shop/db"] },
  { line: "why --o", words: ["--output"] },
  { line: "why -o ", words: ["text", "json"] },
  { line: "why -o j", words: ["json"] },
  { line: "why --output=j", words: ["--output=json"] },
  { line: "why --constructor=x", words: [] },
  { line: "why web ", words: [] },
  { line: "logs web -c ", words: ["main", "proxy"] },
  { line: "logs -f -c p", words: [] },
  { line: "logs web --container=p", words: ["--container=proxy"] },
  { line: "exec web -- ", words: [] },
  { line: "completion ", words: ["bash", "zsh"] },
  { line: "help lo", words: ["logs"] },
  { line: "frobnicate ", words: [] },
  { line: "top --sort ", words: ["cpu", "memory"] },
]) {
  test(`nodelet ${line}[tab]`, async () => {
    const found = await completeLine(line.split(" "), source);
    assert.deepEqual(found === "directories" ? found : found.map(({ word }) => word), words);
  });
}

test("a first tab offers every command with its summary", async () => {
  const found = await completeLine([""], source);
  assert.deepEqual(
    found,
    shownCommands
      .filter(({ name }) => !name.includes(" "))
      .map(({ name, summary }) => ({ word: name, means: summary })),
  );
});

test("directories are for the shell; pods are asked of the agent that is meant", async () => {
  assert.equal(await completeLine(["up", "--manifests", ""], source), "directories");
  assert.equal(await completeLine(["why", "--root-dir=/v"], source), "directories");
  asked.length = 0;
  await completeLine(["why", "--root-dir", "/x", ""], source);
  await completeLine(["why", "--root-dir=/y", ""], source);
  assert.deepEqual(asked, ["/x", "/y"]);
});

const directory = mkdtempSync(join(tmpdir(), "nodelet-completion-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** What bash would offer for a line, by a nodelet that says the given lines and notes how it was called. */
async function offeredByBash(line: string, answers: string): Promise<readonly string[]> {
  const { io, stdout } = recordIo("/");
  assert.equal(await completionCommand(["bash"], io), 0);
  writeFileSync(join(directory, "script"), stdout());
  writeFileSync(
    join(directory, "nodelet"),
    `#!/bin/sh\nprintf '%s' "$3" > ${directory}/asked\nprintf -- '${answers}'\n`,
  );
  chmodSync(join(directory, "nodelet"), 0o755);
  const words = line.match(/[^\s=]+|=/g) ?? [];
  const quoted = [...words, ...(line.endsWith(" ") ? [""] : [])].map((word) => `'${word}'`).join(" ");
  const program = `PATH=${directory}:$PATH; . ${directory}/script; compopt() { :; }
COMP_LINE='${line}' COMP_POINT=${line.length} COMP_WORDS=(${quoted}) COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_nodelet; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout: out, stderr } = spawnSync("bash", ["-c", program], { encoding: "utf8" });
  assert.equal(stderr, "");
  return out.split("\n").filter((word) => word !== "");
}

test("in bash: words without what they mean, and after = only what follows it", async () => {
  assert.deepEqual(await offeredByBash("nodelet wh", "why\\tsay\\n"), ["why"]);
  assert.deepEqual(await offeredByBash("nodelet why --output=j", "--output=json\\n"), ["json"]);
  assert.deepEqual(await offeredByBash("nodelet up --manifests /pro", ":directories\\n"), ["/proc"]);
  assert.deepEqual(await offeredByBash("nodelet why --root-dir=/pro", ":directories\\n"), ["/proc"]);
  assert.deepEqual(await offeredByBash("nodelet x ", ""), []);
});

test("another shell is refused", async () => {
  const { io, stderr } = recordIo("/");
  assert.equal(await completionCommand(["fish"], io), 2);
  assert.match(stderr(), /SHELL is bash or zsh, found fish/);
});
