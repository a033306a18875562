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

test("a container that does not run is the reason, in words, and where to read more", async () => {
  const rootDir = await mkdtemp(join(tmpdir(), "nodelet-exec-"));
  const state = { waiting: { reason: "CrashLoopBackOff\u001b[2J" } };
  const waits = { ...pod, status: { containerStatuses: [{ name: "main", state }] } };
  const server = createServer(({ url = "" }, response) => {
    response.statusCode = url.startsWith("/exec/") ? 500 : 200;
    response.end(response.statusCode === 500 ? 'container not found ("main")' : JSON.stringify({ items: [waits] }));
  });
  try {
    await new Promise<void>((resolve) => server.listen(join(rootDir, "nodelet.sock"), resolve));
    const { io, stderr } = recordIo("/");
    assert.equal(await execCommand(["web", `--root-dir=${rootDir}`, "--", "sh", "-c", "true"], io), 1);
    assert.equal(
      stderr(),
      'nodelet exec: container main of shop/web does not run (CrashLoopBackOff^[[2J); "nodelet why shop/web" says more\n',
    );
  } finally {
    server.close();
    await rm(rootDir, { recursive: true });
  }
});

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
