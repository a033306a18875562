import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import { hostNamespaceHandler, hostNamespaceRefusals } from "./admission-host-namespaces.ts";
import { hostNamespaceSettings } from "./host-namespace-settings.ts";

function podFrom(source: string, spec: Partial<IdentifiedPod["spec"]>): IdentifiedPod {
  return {
    metadata: { name: "n", namespace: "default", uid: "u1", annotations: { "kubernetes.io/config.source": source } },
    spec: { containers: [], ...spec },
  };
}

const byDefault = hostNamespaceSettings({});
const greedy = { hostNetwork: true, hostPID: true, hostIPC: true };

for (const { name, source, spec, settings, wanted } of [
  { name: "default: all", source: "http", spec: greedy, settings: byDefault, wanted: [] },
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
    settings: { ...byDefault, hostPidSources: ["file"] },
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

const fromFile = testPod({ hostNetwork: true }, { annotations: { "kubernetes.io/config.source": "file" } });

test("every source may by default", () => assert.equal(hostNamespaceHandler({})(fromFile, []).type, "admitted"));
test("a listed source may", () =>
  assert.equal(hostNamespaceHandler({ NODELET_HOST_NETWORK_SOURCES: "api, file" })(fromFile, []).type, "admitted"));
test("a source that is not listed is refused by name", () => {
  const verdict = hostNamespaceHandler({ NODELET_HOST_NETWORK_SOURCES: "api" })(fromFile, []);
  assert.equal(verdict.type, "rejected");
  assert.match(verdict.type === "rejected" ? verdict.message : "", /host networking.*its source is "file"/);
});
test("other namespaces have lists of their own", () =>
  assert.equal(hostNamespaceHandler({ NODELET_HOST_PID_SOURCES: "" })(fromFile, []).type, "admitted"));
