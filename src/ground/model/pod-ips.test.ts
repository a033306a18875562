import assert from "node:assert/strict";
import { test } from "node:test";
import { normalIp, orderedPodIps } from "./pod-ips.ts";

for (const [reported, nodeIps, ordered] of [
  [[], ["10.0.0.1"], []],
  [["10.1.0.2"], [], ["10.1.0.2"]],
  [["fd00::2", "10.1.0.2"], ["10.0.0.1"], ["10.1.0.2", "fd00::2"]],
  [
    ["10.1.0.2", "fd00::2"],
    ["fd00::1", "10.0.0.1"],
    ["fd00::2", "10.1.0.2"],
  ],
  [["10.1.0.2", "10.1.0.3", "fd00::2", "fd00::3"], ["10.0.0.1"], ["10.1.0.2", "fd00::2"]],
  [["FD00:0:0::0002"], ["10.0.0.1"], ["fd00::2"]],
  [["not an ip", "10.1.0.2"], ["10.0.0.1"], ["10.1.0.2"]],
] as const) {
  test(`${JSON.stringify(reported)} on a node with ${JSON.stringify(nodeIps)}`, () =>
    assert.deepEqual(orderedPodIps(reported, nodeIps), ordered));
}

for (const [text, normal] of [
  ["10.0.0.1", "10.0.0.1"],
  ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
  ["::1", "::1"],
  ["::ffff:10.0.0.1", "10.0.0.1"],
  ["fe80::1%eth0", "fe80::1%eth0"],
] as const) {
  test(`${text} is normally written ${normal}`, () => assert.equal(normalIp(text), normal));
}
