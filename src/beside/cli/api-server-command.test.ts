import assert from "node:assert/strict";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { type ApiServerOptions, apiServerCommand } from "./api-server-command.ts";

for (const { args, text } of [
  { args: [], text: /nodelet api-server: --dir is missing: where objects.*\nusage:/ },
  { args: ["--dir", "x", "--listen", "6443"], text: /--listen wants HOST:PORT, found "6443"/ },
  { args: ["--dir", "x", "--listen", "a:70000"], text: /--listen wants HOST:PORT, found "a:70000"/ },
  { args: ["--dir", "x", "--binder", "maybe"], text: /--binder wants on or off, found "maybe"/ },
  { args: ["--frob"], text: /there is no option --frob/ },
]) {
  test(`api-server ${args.join(" ") || "without options"} ends with 2`, async () => {
    const { io, stderr } = recordIo("/");
    assert.equal(await apiServerCommand(() => assert.fail("it serves"))(args, io), 2);
    assert.match(stderr(), text);
  });
}

test("api-server: the server gets what was asked for", async () => {
  let asked: ApiServerOptions | undefined;
  const command = apiServerCommand(async (options) => {
    asked = options;
    return 3;
  });
  const args = ["--dir", "x", "--listen", "[::1]:0", "--node", "a", "--node", "b", "--advertise", "h"];
  assert.equal(await command([...args, "--binder", "off"], recordIo("/").io), 3);
  assert.deepEqual(asked, {
    dir: "/x",
    listen: { host: "::1", port: 0 },
    advertise: "h",
    nodes: ["a", "b"],
    kubeletHost: undefined,
    binder: "off",
  });
});
