import assert from "node:assert/strict";
import { test } from "node:test";
import { containerRuntimeVersion } from "./identity.ts";

for (const [version, want] of [
  ["1.6.20~ds1", "containerd://1.6.20"],
  ["v1.7.3", "containerd://1.7.3"],
  ["2.0.0-rc.1", "containerd://2.0.0-rc.1"],
  ["2.1.0+meta.5", "containerd://2.1.0+meta.5"],
  ["1.6", "containerd://1.6"],
  ["1.6.4.2", "containerd://1.6.4.2"],
  ["nightly", "containerd://Unknown"],
  ["", "containerd://Unknown"],
] as const) {
  test(`runtime version "${version}" is reported as ${want}`, () => {
    assert.equal(containerRuntimeVersion({ name: "containerd", version, apiVersion: "v1" }), want);
  });
}
