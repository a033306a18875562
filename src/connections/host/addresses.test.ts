import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import { nodeAddresses } from "./addresses.ts";

test("given addresses are kept as they are", async () =>
  assert.deepEqual(await nodeAddresses(["192.0.2.7", "2001:db8::7"]), ["192.0.2.7", "2001:db8::7"]));

test("with none given, one that is an address is chosen", async () => {
  const [ip = ""] = await nodeAddresses([]);
  assert.notEqual(isIP(ip), 0);
});

test("0.0.0.0 asks for an IPv4 address", async () => {
  const [ip = ""] = await nodeAddresses(["0.0.0.0"]);
  assert.equal(isIP(ip), 4);
  assert.notEqual(ip, "0.0.0.0");
});

test("a machine with no routes still has an address", async () =>
  assert.equal((await nodeAddresses([], "/nonexistent")).length, 1));
