import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import { containerHash, type IdentifiedPod, type PodUid } from "../../ground/model/index.ts";
import { type OfflineList, offlineHolds } from "./offline-rules.ts";
import type { StartedPod } from "./started-pod.ts";

const hour = 3_600_000;
const confirmedAtMs = 1_000 * hour;
const owned = (kind: string, apiVersion = "apps/v1", controller = true): IdentifiedPod =>
  testPod({}, { ownerReferences: [{ kind, apiVersion, name: "o", uid: "o", controller }] });
const daemon = owned("DaemonSet");
const hashes = (pod: IdentifiedPod): ReadonlyMap<string, string> =>
  new Map(pod.spec.containers.map((container) => [container.name, containerHash(container)]));
const running: StartedPod = {
  namespace: "default",
  name: "web",
  uid: daemon.metadata.uid,
  source: "api",
  startedAtMs: confirmedAtMs - hour,
  isLive: true,
  labels: {},
  containerHashes: hashes(daemon),
};
const listOf = (...pods: readonly IdentifiedPod[]): OfflineList => ({
  pods,
  ended: ["ended"],
  confirmedAtMs,
  nodeUid: "node-1",
});

const goesOn = undefined;
for (const [what, pod, started, agedMs, expected] of [
  ["a bare pod that runs", testPod(), [running], hour, goesOn],
  ["a bare pod that runs, by an old list", testPod(), [running], 1_000 * hour, goesOn],
  ["a StatefulSet's pod that runs", owned("StatefulSet"), [running], hour, goesOn],
  [
    "a pod that runs in another version",
    testPod(),
    [{ ...running, containerHashes: new Map([["main", "x"]]) }],
    hour,
    /another version/,
  ],
  [
    "a pod that runs with a container more",
    testPod(),
    [{ ...running, containerHashes: new Map([["debug", "x"]]) }],
    hour,
    /another version/,
  ],
  ["a bare pod that does not run", testPod(), [], hour, /may run elsewhere/],
  ["a StatefulSet's pod that does not run", owned("StatefulSet"), [], hour, /may run elsewhere/],
  ["a ReplicaSet's pod that does not run", owned("ReplicaSet"), [], hour, /may run elsewhere/],
  [
    "a Job's pod of which only records are left",
    owned("Job", "batch/v1"),
    [{ ...running, isLive: false }],
    hour,
    /may run elsewhere/,
  ],
  ["a DaemonSet's pod that does not run", daemon, [], hour, goesOn],
  ["a DaemonSet's pod after a reboot", daemon, [{ ...running, isLive: false }], hour, goesOn],
  ["a DaemonSet's pod by an old list", daemon, [], 25 * hour, /25 hours old/],
  ["a DaemonSet's pod by a list from the future", daemon, [], -hour, /clock/],
  [
    "a DaemonSet's pod when another agent has run since",
    daemon,
    [{ ...running, uid: "other", startedAtMs: confirmedAtMs + 1 }],
    hour,
    /does not know/,
  ],
  ["a DaemonSet's pod beside one that was removed before", daemon, [{ ...running, uid: "other" }], hour, goesOn],
  [
    "a DaemonSet's pod beside one that had ended",
    daemon,
    [{ ...running, uid: "ended", startedAtMs: confirmedAtMs + 1 }],
    hour,
    goesOn,
  ],
  [
    "a DaemonSet's pod beside a static one",
    daemon,
    [{ ...running, uid: "other", source: "file", startedAtMs: confirmedAtMs + 1 }],
    hour,
    goesOn,
  ],
  ["somebody else's DaemonSet", owned("DaemonSet", "example.com/v1"), [], hour, /may run elsewhere/],
  ["an owner that is no controller", owned("DaemonSet", "apps/v1", false), [], hour, /may run elsewhere/],
] as const) {
  test(`${what}: ${expected === undefined ? "goes on" : "waits"}`, () => {
    const now = { nowMs: confirmedAtMs + agedMs, nodeUid: "node-1" };
    const hold = offlineHolds(listOf(pod), started, now).get(pod.metadata.uid as PodUid);
    if (expected === undefined) assert.equal(hold, undefined);
    else assert.match(hold ?? "", expected);
  });
}

for (const [what, listed, known, started, expected] of [
  ["the Node was made anew", "node-1", "node-2", [], /deleted since/],
  ["the Node was made anew, and it runs", "node-1", "node-2", [running], goesOn],
  ["the list does not name the Node", undefined, "node-2", [], goesOn],
  ["the Node is not known", "node-1", undefined, [], goesOn],
] as const) {
  test(`a DaemonSet's pod when ${what}: ${expected === undefined ? "goes on" : "waits"}`, () => {
    const list = { ...listOf(daemon), nodeUid: listed };
    const now = { nowMs: confirmedAtMs + hour, nodeUid: known };
    const hold = offlineHolds(list, started, now).get(daemon.metadata.uid as PodUid);
    if (expected === undefined) assert.equal(hold, undefined);
    else assert.match(hold ?? "", expected);
  });
}
