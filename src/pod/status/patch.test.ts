import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodStatus } from "../../ground/model/index.ts";
import { statusPatch } from "./patch.ts";

const ready = { type: "Ready", status: "True", lastTransitionTime: "t1" };
const foreign = { type: "example.com/gate", status: "True" };

for (const [name, before, after, wanted] of [
  ["nothing changed", { phase: "Running" }, { phase: "Running" }, undefined],
  ["empty and absent are the same", { phase: "Running", containerStatuses: [] }, { phase: "Running" }, undefined],
  ["a field changed", { phase: "Pending" }, { phase: "Running" }, { phase: "Running" }],
  ["a field was dropped", { phase: "Failed", reason: "Evicted" }, { phase: "Failed" }, { reason: null }],
  [
    "a condition changed: only it is sent, with the order of all",
    { conditions: [foreign, { ...ready, status: "False", reason: "ContainersNotReady" }] },
    { conditions: [foreign, ready] },
    {
      "$setElementOrder/conditions": [{ type: "example.com/gate" }, { type: "Ready" }],
      conditions: [{ type: "Ready", status: "True", reason: null }],
    },
  ],
  [
    "a condition vanished",
    { conditions: [ready, { type: "PodResizePending", status: "True" }] },
    { conditions: [ready] },
    {
      "$setElementOrder/conditions": [{ type: "Ready" }],
      conditions: [{ $patch: "delete", type: "PodResizePending" }],
    },
  ],
  [
    "addresses are merged by ip",
    { podIPs: [{ ip: "10.0.0.1" }] },
    { podIPs: [{ ip: "10.0.0.2" }] },
    {
      "$setElementOrder/podIPs": [{ ip: "10.0.0.2" }],
      podIPs: [{ ip: "10.0.0.2" }, { $patch: "delete", ip: "10.0.0.1" }],
    },
  ],
  [
    "container statuses are replaced whole",
    { containerStatuses: [{ name: "a", ready: false, restartCount: 0, image: "", imageID: "" }] },
    { containerStatuses: [{ name: "a", ready: true, restartCount: 0, image: "", imageID: "" }] },
    { containerStatuses: [{ name: "a", ready: true, restartCount: 0, image: "", imageID: "" }] },
  ],
  [
    "container statuses are sent as they are, emptiness included",
    { containerStatuses: [{ name: "a", ready: false, restartCount: 0, image: "", imageID: "" }] },
    {
      containerStatuses: [
        { name: "a", state: { waiting: {} }, resources: {}, ready: false, restartCount: 1, image: "", imageID: "" },
      ],
    },
    {
      containerStatuses: [
        { name: "a", state: { waiting: {} }, resources: {}, ready: false, restartCount: 1, image: "", imageID: "" },
      ],
    },
  ],
  [
    "emptiness alone is no news",
    { containerStatuses: [{ name: "a", ready: false, restartCount: 0, image: "", imageID: "" }] },
    { containerStatuses: [{ name: "a", lastState: {}, ready: false, restartCount: 0, image: "", imageID: "" }] },
    undefined,
  ],
  [
    "null and absent are the same",
    { conditions: [{ ...ready, lastProbeTime: null }] },
    { conditions: [ready] },
    undefined,
  ],
  ["what others own is left alone", { nominatedNodeName: "n", phase: "Pending" }, { phase: "Pending" }, undefined],
] as const) {
  test(name, () => {
    const patch = statusPatch("u", before as PodStatus, after);
    assert.deepEqual(patch, wanted === undefined ? undefined : { metadata: { uid: "u" }, status: wanted });
  });
}
