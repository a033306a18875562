import assert from "node:assert/strict";
import { test } from "node:test";
import type { DoctorFinding, State } from "./finding.ts";
import { nodeConditions } from "./node-conditions.ts";

const now = "2026-11-17T00:00:00Z";
const [hung, remounted, readOnly] = ["kernel-log.hung-tasks", "kernel-log.read-only", "disk.read-only"];

function finding(id: string, state: State, seen = ""): DoctorFinding {
  return { id, group: "", title: "", state, seen, from: "", why: "", fix: "" };
}

function conditionsOf(...found: readonly DoctorFinding[]): readonly string[] {
  return nodeConditions(found, [], now).map(({ type, status, reason, message }) =>
    [type, status, reason, message].join("|"),
  );
}

const noDeadlock = "KernelDeadlock|False|KernelHasNoDeadlock|kernel has no deadlock";
const writable = "ReadonlyFilesystem|False|FilesystemIsNotReadOnly|Filesystem is not read-only";

for (const [what, found, wanted] of [
  [
    "all is well",
    [finding(hung, "pass"), finding(remounted, "pass"), finding(readOnly, "pass")],
    [noDeadlock, writable],
  ],
  [
    "a task hung, a file system is read-only",
    [finding(hung, "fail", "once: task x"), finding(remounted, "unknown"), finding(readOnly, "fail", "/var")],
    ["KernelDeadlock|True|TaskHung|once: task x", "ReadonlyFilesystem|True|FilesystemIsReadOnly|/var"],
  ],
  ["the log can't be read", [finding(hung, "unknown", "EPERM")], ["KernelDeadlock|Unknown|NotExamined|EPERM"]],
  ["other checks only", [finding("4.2.1", "fail")], []],
] as const) {
  test(`what the Node is told: ${what}`, () => assert.deepEqual(conditionsOf(...found), wanted));
}

test("the time of the change stays as long as the state does", () => {
  const before = { type: "KernelDeadlock", status: "False", lastTransitionTime: "2026-01-01T00:00:00Z" };
  const times = (state: State) =>
    nodeConditions([finding(hung, state)], [before], now).map((each) => [
      each.lastTransitionTime,
      each.lastHeartbeatTime,
    ]);
  assert.deepEqual(times("pass"), [["2026-01-01T00:00:00Z", now]]);
  assert.deepEqual(times("fail"), [[now, now]]);
});
