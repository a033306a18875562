import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TestFacts } from "../../../../test/support/node-facts.ts";
import { findAddresses } from "./addresses.ts";

const never = new AbortController().signal;

async function addresses(options: {
  nodeName?: string;
  nodeIps?: readonly string[];
  externalCloud?: boolean;
  present?: readonly { type: string; address: string }[];
  facts?: Partial<TestFacts>;
}): Promise<readonly string[]> {
  const facts = Object.assign(new TestFacts(), options.facts);
  const { nodeName = "node-1", nodeIps = [], externalCloud = false, present = [] } = options;
  const found = await findAddresses({ nodeName, nodeIps, externalCloud }, present, facts.network, never);
  return found.map(({ type, address }) => `${type}=${address}`);
}

for (const { name, options, expected } of [
  { name: "the default route's", options: {}, expected: ["InternalIP=10.0.0.5", "Hostname=node-1"] },
  {
    name: "what was given wins over the name",
    options: { nodeIps: ["10.0.0.5"], facts: { names: { "node-1": ["10.0.0.9"] } } },
    expected: ["InternalIP=10.0.0.5", "Hostname=node-1"],
  },
  {
    name: "one of each family",
    options: { nodeIps: ["fd00::5", "10.0.0.5"] },
    expected: ["InternalIP=fd00::5", "InternalIP=10.0.0.5", "Hostname=node-1"],
  },
  {
    name: "a name that is an address",
    options: { nodeName: "10.1.1.1" },
    expected: ["InternalIP=10.1.1.1", "Hostname=10.1.1.1"],
  },
  {
    name: "the first usable address of the name, of the preferred family",
    options: {
      facts: { names: { "node-1": ["127.0.0.1", "fd00::5", "10.0.0.7"] }, ownIps: new Set(["fd00::5", "10.0.0.7"]) },
    },
    expected: ["InternalIP=10.0.0.7", "Hostname=node-1"],
  },
  {
    name: "another family when the preferred has none",
    options: { facts: { names: { "node-1": ["fd00::5"] } } },
    expected: ["InternalIP=fd00::5", "Hostname=node-1"],
  },
  {
    name: "0.0.0.0 asks for IPv4",
    options: { nodeIps: ["0.0.0.0"], facts: { names: { "node-1": ["fd00::5", "10.0.0.5"] } } },
    expected: ["InternalIP=10.0.0.5", "Hostname=node-1"],
  },
  {
    name: ":: asks for IPv6",
    options: { nodeIps: ["::"], facts: { names: { "node-1": ["10.0.0.5", "fd00::5"] } } },
    expected: ["InternalIP=fd00::5", "Hostname=node-1"],
  },
  {
    name: "an external cloud waits for its provider",
    options: { externalCloud: true },
    expected: ["Hostname=node-1"],
  },
  {
    name: "an external cloud's addresses are left alone",
    options: { externalCloud: true, nodeIps: ["10.0.0.5"], present: [{ type: "ExternalIP", address: "1.2.3.4" }] },
    expected: ["ExternalIP=1.2.3.4"],
  },
  {
    name: "an external cloud with a given address",
    options: { externalCloud: true, nodeIps: ["10.0.0.5"] },
    expected: ["InternalIP=10.0.0.5", "Hostname=node-1"],
  },
]) {
  test(name, async () => assert.deepEqual(await addresses(options), expected));
}

describe("an address that cannot be the node's", () => {
  for (const { nodeIps, expected } of [
    { nodeIps: ["127.0.0.1"], expected: "failed to validate nodeIP: nodeIP can't be loopback address" },
    { nodeIps: ["224.0.0.1"], expected: "failed to validate nodeIP: nodeIP can't be a multicast address" },
    { nodeIps: ["169.254.1.1"], expected: "failed to validate nodeIP: nodeIP can't be a link-local unicast address" },
    {
      nodeIps: ["10.0.0.5", "fe80::1"],
      expected: "failed to validate secondaryNodeIP: nodeIP can't be a link-local unicast address",
    },
    {
      nodeIps: ["192.168.9.9"],
      expected: 'failed to validate nodeIP: node IP: "192.168.9.9" not found in the host\'s network interfaces',
    },
  ]) {
    test(nodeIps.join(), () => assert.rejects(addresses({ nodeIps }), { message: expected }));
  }

  test("none at all", () =>
    assert.rejects(addresses({ facts: { defaults: {} } }), {
      message: "can't get ip address of node node-1. error: no default routes found",
    }));
});
