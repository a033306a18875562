import assert from "node:assert/strict";
import { once } from "node:events";
import promises, { mkdir, mkdtemp, rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import { SocketWatch } from "./socket-watch.ts";

for (const call of ["readdir", "lstat"] as const) {
  test(`sockets that can't be looked at for want of descriptors (${call}) are where they were`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "nodelet-sockets-"));
    await mkdir(join(directory, "below"));
    const servers = ["a.sock", "below/b.sock"].map((name) => createServer().listen(join(directory, name)));
    for (const server of servers) if (!server.listening) await once(server, "listening");
    const watch = new SocketWatch(directory, () => {});
    try {
      const { found: before } = await watch.look();
      assert.equal(before.size, 2);
      const failing = mock.method(promises, call, async () => {
        throw Object.assign(new Error("EMFILE"), { code: "EMFILE" });
      });
      syncBuiltinESMExports();
      try {
        assert.deepEqual((await watch.look()).found, before);
      } finally {
        failing.mock.restore();
        syncBuiltinESMExports();
      }
      assert.deepEqual((await watch.look()).found, before);
      servers[1]?.close();
      await rm(join(directory, "below"), { recursive: true });
      assert.deepEqual([...(await watch.look()).found.keys()], [join(directory, "a.sock")]);
    } finally {
      watch.close();
      for (const server of servers) server.close();
      await rm(directory, { recursive: true });
    }
  });
}
