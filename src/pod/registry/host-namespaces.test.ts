import assert from "node:assert/strict";
import { test } from "node:test";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import {
  allHostNamespaceSources,
  hostNamespaceRefusals,
  parsePodSources,
  UnknownPodSourceError,
} from "./host-namespaces.ts";

function podFrom(source: string, spec: Partial<IdentifiedPod["spec"]>): IdentifiedPod {
  return {
    metadata: { name: "n", namespace: "default", uid: "u1", annotations: { "kubernetes.io/config.source": source } },
    spec: { containers: [], ...spec },
  };
}

const greedy = { hostNetwork: true, hostPID: true, hostIPC: true };

for (const { name, source, spec, settings, wanted } of [
  { name: "default: all", source: "http", spec: greedy, settings: allHostNamespaceSources, wanted: [] },
  {
    name: "one kind listed",
    source: "http",
    spec: greedy,
    settings: { hostNetworkSources: ["file", "api"], hostPidSources: ["http"], hostIpcSources: [] },
    wanted: [
      'pod with UID "u1" specified host networking, but is disallowed: its source is "http", allowed sources: file, api',
      'pod with UID "u1" specified host ipc, but is disallowed: its source is "http", allowed sources: none',
    ],
  },
  {
    name: "host PID",
    source: "api",
    spec: { hostPID: true },
    settings: { ...allHostNamespaceSources, hostPidSources: ["file"] },
    wanted: ['pod with UID "u1" specified host PID, but is disallowed: its source is "api", allowed sources: file'],
  },
  {
    name: "nothing asked, nothing refused",
    source: "http",
    spec: { hostNetwork: false },
    settings: { hostNetworkSources: [], hostPidSources: [], hostIpcSources: [] },
    wanted: [],
  },
] as const) {
  test(`host namespaces: ${name}`, () =>
    assert.deepEqual(hostNamespaceRefusals(podFrom(source, spec), settings), wanted));
}

test("source lists are parsed, unknown names refused", () => {
  assert.deepEqual(parsePodSources(["file", "http", "api", "*"]), ["file", "http", "api", "*"]);
  assert.throws(
    () => parsePodSources(["file", "etcd"]),
    (error) =>
      error instanceof UnknownPodSourceError &&
      error.found === "etcd" &&
      /unknown pod source "etcd"/.test(error.message),
  );
});
