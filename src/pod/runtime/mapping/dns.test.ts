import assert from "node:assert/strict";
import { test } from "node:test";
import { examplePod } from "../../../../test/support/example-context.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import type { DnsSettings } from "./context.ts";
import { podDns } from "./dns.ts";

const settings: DnsSettings = {
  clusterDns: ["10.96.0.10"],
  clusterDomain: "cluster.local",
  hostDns: {
    nameservers: ["192.0.2.1", "192.0.2.2"],
    searches: ["example.net", "svc.cluster.local"],
    options: ["rotate"],
  },
  nodeIps: ["10.0.0.1", "fd00::1"],
};
const host = settings.hostDns;
const clusterSearches = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.net"];
const cluster = { nameservers: ["10.96.0.10"], searches: clusterSearches, options: ["ndots:5"] };
const none = { nameservers: [], searches: [], options: [] };

interface Row {
  readonly name: string;
  readonly spec: Partial<IdentifiedPod["spec"]>;
  readonly change?: Partial<DnsSettings>;
  readonly config: unknown;
}

const rows: readonly Row[] = [
  { name: "ClusterFirst", spec: { dnsPolicy: "ClusterFirst" }, config: cluster },
  { name: "no policy", spec: {}, config: cluster },
  { name: "an invalid policy", spec: { dnsPolicy: "Whatever" }, config: cluster },
  { name: "ClusterFirst on the host's network", spec: { dnsPolicy: "ClusterFirst", hostNetwork: true }, config: host },
  {
    name: "ClusterFirstWithHostNet on the host's network",
    spec: { dnsPolicy: "ClusterFirstWithHostNet", hostNetwork: true },
    config: cluster,
  },
  { name: "ClusterFirstWithHostNet off it", spec: { dnsPolicy: "ClusterFirstWithHostNet" }, config: cluster },
  { name: "Default", spec: { dnsPolicy: "Default" }, config: host },
  { name: "None", spec: { dnsPolicy: "None" }, config: none },
  {
    name: "no cluster domain",
    spec: { dnsPolicy: "ClusterFirst" },
    change: { clusterDomain: "" },
    config: { ...cluster, searches: host?.searches },
  },
  {
    name: "several cluster servers",
    spec: { dnsPolicy: "ClusterFirst" },
    change: { clusterDns: ["10.96.0.10", "fd00::a"] },
    config: { ...cluster, nameservers: ["10.96.0.10", "fd00::a"] },
  },
  {
    name: "ClusterFirst with resolvConf empty",
    spec: { dnsPolicy: "ClusterFirst" },
    change: { hostDns: undefined },
    config: { ...cluster, searches: clusterSearches.slice(0, 3) },
  },
  {
    name: "Default with resolvConf empty on a dual-stack node",
    spec: { dnsPolicy: "Default" },
    change: { hostDns: undefined },
    config: { nameservers: ["127.0.0.1", "::1"], searches: ["."], options: [] },
  },
  {
    name: "Default with resolvConf empty before the node's IPs are known",
    spec: { dnsPolicy: "Default" },
    change: { hostDns: undefined, nodeIps: [] },
    config: { nameservers: ["127.0.0.1"], searches: ["."], options: [] },
  },
  {
    name: "dnsConfig on None",
    spec: {
      dnsPolicy: "None",
      dnsConfig: {
        nameservers: ["1.1.1.1"],
        searches: ["corp"],
        options: [{ name: "ndots", value: "2" }, { name: "edns0" }, { name: "rotate", value: "" }],
      },
    },
    config: { nameservers: ["1.1.1.1"], searches: ["corp"], options: ["ndots:2", "edns0", "rotate"] },
  },
  {
    name: "dnsConfig on ClusterFirst: appended, duplicates dropped, options override by name",
    spec: {
      dnsPolicy: "ClusterFirst",
      dnsConfig: {
        nameservers: ["1.1.1.1", "10.96.0.10"],
        searches: ["corp", "cluster.local"],
        options: [{ name: "ndots", value: "1" }, { name: "debug" }],
      },
    },
    config: {
      nameservers: ["10.96.0.10", "1.1.1.1"],
      searches: [...clusterSearches, "corp"],
      options: ["ndots:1", "debug"],
    },
  },
  { name: "an empty dnsConfig", spec: { dnsPolicy: "Default", dnsConfig: {} }, config: host },
];

for (const { name, spec, change, config } of rows) {
  test(`DNS: ${name}`, () => {
    const result = podDns(examplePod(spec), { ...settings, ...change });
    assert.deepEqual(result, { config, notices: [] });
  });
}

test("without a cluster DNS server the node's settings stand in, and node and pod are told", () => {
  const { config, notices } = podDns(examplePod({ dnsPolicy: "ClusterFirst" }), { ...settings, clusterDns: [] });
  assert.deepEqual(config, host);
  const text =
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
    'Falling back to "Default" policy.';
  assert.deepEqual(notices, [
    { about: "node", event: { type: "Warning", reason: "MissingClusterDNS", message: text } },
    {
      about: "pod",
      event: { type: "Warning", reason: "MissingClusterDNS", message: `pod: "web_shop(u-1)". ${text}` },
    },
  ]);
});

function messagesFor(dnsConfig: NonNullable<IdentifiedPod["spec"]["dnsConfig"]>): {
  config: ReturnType<typeof podDns>["config"];
  messages: string[];
} {
  const { config, notices } = podDns(examplePod({ dnsPolicy: "None", dnsConfig }), settings);
  for (const { about, event } of notices) assert.deepEqual([about, event.reason], ["pod", "DNSConfigForming"]);
  return { config, messages: notices.map(({ event }) => event.message) };
}

test("three name servers at most", () => {
  const { config, messages } = messagesFor({ nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"] });
  assert.deepEqual(config.nameservers, ["1.1.1.1", "2.2.2.2", "3.3.3.3"]);
  assert.deepEqual(messages, [
    "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3",
  ]);
});

test("32 search domains at most", () => {
  const searches = Array.from({ length: 33 }, (_, index) => `d${index}`);
  const { config, messages } = messagesFor({ searches });
  assert.deepEqual(config.searches, searches.slice(0, 32));
  assert.deepEqual(messages, [
    `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.slice(0, 32).join(" ")}`,
  ]);
});

test("a search domain longer than 253 characters is dropped", () => {
  const { config, messages } = messagesFor({ searches: ["a", "x".repeat(254), "y".repeat(253), "b"] });
  assert.deepEqual(config.searches, ["a", "y".repeat(253), "b"]);
  assert.equal(messages.length, 1);
});

test("the search line is cut from its end to 2048 characters", () => {
  const searches = Array.from({ length: 10 }, (_, index) => `${"x".repeat(226)}${index}`);
  const exactly = searches.slice(0, 9);
  assert.equal(exactly.join(" ").length, 2051);
  const { config, messages } = messagesFor({ searches });
  assert.deepEqual(config.searches, searches.slice(0, 8));
  assert.equal(messages.length, 1);
  const fitting = [...Array.from({ length: 8 }, (_, index) => `${"x".repeat(226)}${index}`), "z".repeat(224)];
  assert.equal(fitting.join(" ").length, 2048);
  assert.deepEqual(messagesFor({ searches: fitting }), {
    config: { nameservers: [], searches: fitting, options: [] },
    messages: [],
  });
});
