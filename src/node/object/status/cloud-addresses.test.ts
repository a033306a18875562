import assert from "node:assert/strict";
import { test } from "node:test";
import { cloudAddresses } from "./cloud-addresses.ts";

const given = [
  { type: "InternalIP", address: "10.0.0.5" },
  { type: "InternalIP", address: "10.0.0.6" },
  { type: "ExternalIP", address: "1.2.3.4" },
];
const shown = (list: readonly { type: string; address: string }[]): string[] =>
  list.map(({ type, address }) => `${type}=${address}`);

for (const { name, settings, addresses, expected } of [
  { name: "as given", settings: {}, addresses: given, expected: shown(given) },
  { name: "none: the host name", settings: {}, addresses: [], expected: ["Hostname=node-1"] },
  {
    name: "--node-ip is alone among its type",
    settings: { nodeIps: ["10.0.0.6"] },
    addresses: given,
    expected: ["InternalIP=10.0.0.6", "ExternalIP=1.2.3.4"],
  },
  {
    name: "both of --node-ip, in its order, however they are spelled",
    settings: { nodeIps: ["fd00::5", "10.0.0.6"] },
    addresses: [...given, { type: "InternalIP", address: "fd00:0::0005" }],
    expected: ["InternalIP=fd00:0::0005", "InternalIP=10.0.0.6", "ExternalIP=1.2.3.4"],
  },
  { name: "0.0.0.0 chooses nothing", settings: { nodeIps: ["0.0.0.0"] }, addresses: given, expected: shown(given) },
  {
    name: "an address that is the name",
    settings: {},
    addresses: [{ type: "InternalDNS", address: "node-1" }],
    expected: ["InternalDNS=node-1", "Hostname=node-1"],
  },
  {
    name: "the cloud's host name stays",
    settings: {},
    addresses: [{ type: "Hostname", address: "cloud-1" }],
    expected: ["Hostname=cloud-1"],
  },
  {
    name: "a name that was given replaces the cloud's",
    settings: { isNameGiven: true },
    addresses: [{ type: "Hostname", address: "cloud-1" }],
    expected: ["Hostname=node-1"],
  },
  {
    name: "a name that was given is added",
    settings: { isNameGiven: true },
    addresses: [{ type: "InternalIP", address: "10.0.0.5" }],
    expected: ["InternalIP=10.0.0.5", "Hostname=node-1"],
  },
]) {
  test(`addresses of a cloud: ${name}`, () => {
    const all = { nodeName: "node-1", nodeIps: [], isNameGiven: false, ...settings };
    assert.deepEqual(shown(cloudAddresses(all, addresses)), expected);
  });
}

test("addresses of a cloud: --node-ip must be among them", () => {
  assert.throws(() => cloudAddresses({ nodeName: "n", nodeIps: ["9.9.9.9"], isNameGiven: false }, given), {
    message: "failed to get node address from cloud provider that matches ip: 9.9.9.9",
  });
});
