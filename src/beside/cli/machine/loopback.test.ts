import assert from "node:assert/strict";
import type { NetworkInterfaceInfo } from "node:os";
import { test } from "node:test";
import { hostPort, loopbackOf } from "./loopback.ts";

const at = (...addresses: readonly string[]) => addresses.map((address) => ({ address }) as NetworkInterfaceInfo);

test("a machine reaches itself by IPv4, and by IPv6 where it has no other; one that can't is told what to do", () => {
  assert.equal(loopbackOf({ lo: at("127.0.0.1", "::1"), eth0: at("10.0.0.7") }), "127.0.0.1");
  assert.equal(loopbackOf({ lo: at("::1"), eth0: at("fd00::7") }), "::1");
  assert.throws(() => loopbackOf({ eth0: at("10.0.0.7") }), /neither 127\.0\.0\.1 nor ::1.*"ip link set lo up"/);
  assert.deepEqual([hostPort("127.0.0.1", 1), hostPort("::1", 1)], ["127.0.0.1:1", "[::1]:1"]);
});
