// Tab in a real zsh. It stands here because it, too, needs a program that nodelet itself does without.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { nodelet } from "../support/daemon.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-zsh-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** What a person's zsh is told, and a key (Ctrl-G) that says what stands on the line and empties it. */
const settings = `
fpath=(${directory} $fpath)
path=(${dirname(nodelet)} $path)
autoload -Uz compinit && compinit -u -d ${directory}/dump
say-line() { print -rn -- "<<$BUFFER>>"; BUFFER= }
zle -N say-line
bindkey '^G' say-line
bindkey '^I' complete-word
setopt no_beep
print READY
`;

/** Types each line, then Tab; a zsh of its own on a terminal of its own takes the keys one after the other. */
const typist = `
zmodload zsh/zpty || exit 9
zpty shell zsh -d -i
zpty -r shell said '*READY*' || exit 8
for line in "$@"; do
  zpty -w -n shell "$line"$'\\t\\a'
  zpty -r shell said '*<<*>>*' || exit 7
  print -rN -- "$said"
done
zpty -d shell
`;

test("in zsh, Tab completes commands, options, their values and directories", () => {
  const script = spawnSync(nodelet, ["completion", "zsh"], { encoding: "utf8" });
  assert.equal(script.status, 0, script.stderr);
  writeFileSync(join(directory, "_nodelet"), script.stdout);
  writeFileSync(join(directory, ".zshrc"), settings);
  const wanted = new Map([
    ["nodelet wh", "nodelet why "],
    ["nodelet pods --all", "nodelet pods --all-namespaces "],
    ["nodelet pods -o wi", "nodelet pods -o wide "],
    ["nodelet pods --output=ya", "nodelet pods --output=yaml "],
    ["nodelet config hi", "nodelet config history "],
    ["nodelet up --manifests /pro", "nodelet up --manifests /proc/"],
    ["nodelet why --root-dir=/pro", "nodelet why --root-dir=/proc/"],
    ["nodelet frobnicate x", "nodelet frobnicate x"],
    ["nodelet co", "nodelet co"],
  ]);
  const { stdout, stderr, status } = spawnSync("zsh", ["-f", "-c", typist, "typist", ...wanted.keys()], {
    encoding: "utf8",
    env: { ...process.env, ZDOTDIR: directory, TERM: "xterm", LC_ALL: "C.UTF-8" },
    timeout: 120_000,
  });
  assert.deepEqual([status, stderr], [0, ""]);
  const said = stdout.split("\0").slice(0, -1);
  const lines = said.map((each) => /<<(.*)>>/s.exec(each)?.[1]);
  assert.deepEqual(lines, [...wanted.values()]);
  // Where several words fit, each is listed with what it means.
  assert.match(said.at(-1) ?? "", /completion +-- print what makes a shell/);
});
