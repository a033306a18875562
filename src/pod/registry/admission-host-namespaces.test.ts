import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import { hostNamespaceHandler } from "./admission-host-namespaces.ts";

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
test("an unknown source is a clear error at start", () =>
  assert.throws(() => hostNamespaceHandler({ NODELET_HOST_IPC_SOURCES: "usb" }), /NODELET_HOST_IPC_SOURCES is "usb"/));
