import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { freePort, usablePort } from "./ports.ts";

test("a port that is free is taken as it is", async () => {
  const port = await freePort("127.0.0.1");
  assert.ok(port !== undefined);
  assert.equal(await usablePort("127.0.0.1", port), port);
});

test("in place of a port that is taken comes one that the kernel gives to nobody by chance", async () => {
  const [lowest] = (await readFile("/proc/sys/net/ipv4/ip_local_port_range", "utf8")).split(/\s+/).map(Number);
  const occupant = createServer().listen(0, "127.0.0.1");
  await once(occupant, "listening");
  const { port: taken } = occupant.address() as AddressInfo;
  const other = await usablePort("127.0.0.1", taken);
  occupant.close();
  assert.notEqual(other, taken);
  assert.ok(other < (lowest ?? 0), `${other} is not below ${lowest}`);
});
