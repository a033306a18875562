import assert from "node:assert/strict";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { helpCommand, unknownCommand } from "./help-command.ts";

const run = (name: string, args: readonly string[]): Promise<number> | undefined =>
  name === "up" ? Promise.resolve(args.length) : undefined;

for (const args of [[], ["help"], ["--help"], ["-h"]]) {
  test(`help ${args.join(" ")} lists every command`, async () => {
    const { io, stdout, stderr } = recordIo("/");
    assert.equal(await helpCommand(run)(args, io), 0);
    for (const name of ["up", "down", "why", "blame", "config", "api-server", "version", "help"]) {
      assert.match(stdout(), new RegExp(`^  ${name} +\\S`, "m"));
    }
    assert.equal(stderr(), "");
  });
}

test("help of a command is what the command says to --help", async () => {
  const { io } = recordIo("/");
  assert.equal(await helpCommand(run)(["up"], io), 1);
  assert.equal(await helpCommand(run)(["up", "down"], io), 2);
});

for (const { typed, meant } of [
  { typed: "dwon", meant: "down" },
  { typed: "pu", meant: "up" },
  { typed: "conf", meant: "config" },
  { typed: "Version", meant: "version" },
  { typed: "apiserver", meant: "api-server" },
  { typed: "frobnicate", meant: undefined },
  { typed: "x".repeat(1_000_000), meant: undefined },
]) {
  test(`"${typed.slice(0, 20)}" may be meant for ${meant ?? "nothing"}`, () => {
    const { io, stderr } = recordIo("/");
    assert.equal(unknownCommand(typed, io), 1);
    const [first = "", second] = stderr().split("\n");
    assert.equal(first.startsWith(`nodelet: unknown command ${typed.slice(0, 100)}`), true);
    assert.equal(/did you mean "nodelet (.*)"\?/.exec(first)?.[1], meant);
    assert.equal(second, '"nodelet help" lists the commands.');
  });
}
