import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { SpdySession } from "../../ground/spdy/index.ts";
import { execCommand } from "./exec-command.ts";
import type { UserInput } from "./io.ts";

const pod = { metadata: { name: "web", namespace: "shop", uid: "u1" }, spec: { containers: [{ name: "main" }] } };

/** An agent whose command in the container waits for its input for ever. */
async function startAgent(rootDir: string) {
  const server = createServer((_, response) => void response.end(JSON.stringify({ items: [pod] })));
  server.on("upgrade", (_, socket) => {
    socket.on("error", () => {});
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
        "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n",
    );
    new SpdySession(socket, (stream) => stream.resume());
  });
  await new Promise<void>((resolve) => server.listen(join(rootDir, "nodelet.sock"), resolve));
  return server;
}

test("an input that can't be read ends the command with its reason, though the container's end waits for more", async () => {
  const rootDir = await mkdtemp(join(tmpdir(), "nodelet-exec-"));
  const server = await startAgent(rootDir);
  try {
    const input: UserInput = {
      isTTY: false,
      setRaw: () => {},
      // biome-ignore lint/correctness/useYield: it fails before there is anything to yield.
      read: async function* () {
        throw new Error("EISDIR: illegal operation on a directory, read");
      },
      onResize: () => () => {},
    };
    const { io, stderr } = recordIo("/", input);
    const code = await execCommand(["web", "-i", `--root-dir=${rootDir}`, "--", "cat"], io);
    assert.deepEqual([code, stderr()], [1, "nodelet exec: EISDIR: illegal operation on a directory, read\n"]);
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(rootDir, { recursive: true });
  }
});
