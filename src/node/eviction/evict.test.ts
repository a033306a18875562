import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import type { PodStatus } from "../../ground/model/index.ts";
import { evict } from "./evict.ts";

test("an evicted pod has a second to end, and its status, an event and a metric say why", () => {
  const said: string[] = [];
  const message = 'Usage of EmptyDir volume "a" exceeds the limit "1Mi". ';
  evict(
    testPod({}, { uid: "u" }),
    { signal: "emptydirfs.limit", message },
    {
      recordEvent: (_, { type, reason, message: text }) => said.push(`${type} ${reason} ${text}`),
      onEvicted: (signal) => said.push(signal),
      terminate: (uid, { cause, graceSeconds, amendStatus }) => {
        const before: PodStatus = { phase: "Running", podIP: "10.0.0.1" };
        const after = { podIP: "10.0.0.1", phase: "Failed", reason: "Evicted", message };
        assert.deepEqual(amendStatus(before), after);
        said.push(`${uid} ${cause} ${graceSeconds}`);
      },
    },
  );
  assert.deepEqual(said, ["emptydirfs.limit", `Warning Evicted ${message}`, "u evicted 1"]);
});
