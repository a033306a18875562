import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import { runtimeHandlers } from "./runtime-handlers.ts";

const asking = (runtimeClassName?: string) => testPod(runtimeClassName === undefined ? {} : { runtimeClassName });

test("the class of a pod names the handler; without a cluster the name is the handler", () => {
  const inCluster = runtimeHandlers({ get: (_, name) => (name === "safe" ? { handler: "kata" } : undefined) });
  assert.equal(inCluster(asking()), "");
  assert.equal(inCluster(asking("")), "");
  assert.equal(inCluster(asking("safe")), "kata");
  assert.throws(() => inCluster(asking("other")), { message: 'RuntimeClass "other" not found' });
  assert.equal(runtimeHandlers(undefined)(asking("kata")), "kata");
});
