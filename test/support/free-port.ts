import assert from "node:assert/strict";
import { freePort as findFreePort } from "../../src/beside/cli/ports.ts";

/** A port of this machine that nobody listens on at the moment, and that nobody is given by chance. */
export async function freePort(): Promise<number> {
  const port = await findFreePort("127.0.0.1");
  assert.ok(port !== undefined, "no port is free");
  return port;
}
