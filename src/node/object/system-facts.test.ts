import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { systemNetwork } from "./system-facts.ts";

test("this machine has addresses", async () => {
  const network = systemNetwork(new FakeClock());
  assert.ok(network.ownAddresses().has("127.0.0.1"));
  const never = new AbortController().signal;
  assert.deepEqual(await network.lookup("127.0.0.9", never), ["127.0.0.9"]);
});
