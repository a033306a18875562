import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemdSockets } from "./find.ts";

test("systemd is where its directory is; of its sockets those that are there, the bus first", async () => {
  const root = await mkdtemp(join(tmpdir(), "s-"));
  const servers = new Set<ReturnType<typeof createServer>>();
  const listen = async (path: string): Promise<void> => {
    const server = createServer();
    servers.add(server);
    await mkdir(join(root, path, ".."), { recursive: true });
    await new Promise<void>((resolve) => server.listen(join(root, path), resolve));
  };
  const kinds = async (address?: string): Promise<readonly string[]> =>
    (await systemdSockets(address, root)).map(({ kind, path }) => `${kind} ${path}`);
  try {
    await listen("/run/dbus/system_bus_socket");
    assert.deepEqual(await kinds(), []);
    await mkdir(join(root, "run/systemd/system"), { recursive: true });
    assert.deepEqual(await kinds(), ["bus /run/dbus/system_bus_socket"]);
    await listen("/run/systemd/private");
    const direct = "direct /run/systemd/private";
    assert.deepEqual(await kinds(), ["bus /run/dbus/system_bus_socket", direct]);
    assert.deepEqual(await kinds("unix:path=/elsewhere"), [direct]);
    await listen("/else where");
    assert.deepEqual(await kinds("tcp:host=a;unix:guid=1,path=/else%20where,x=y"), ["bus /else where", direct]);
    assert.deepEqual(await kinds("unix:abstract=a"), ["bus \0a", direct]);
    assert.deepEqual(await kinds("nonsense"), ["bus /run/dbus/system_bus_socket", direct]);
  } finally {
    for (const server of servers) server.close();
    await rm(root, { recursive: true });
  }
});
