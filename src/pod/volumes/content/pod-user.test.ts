import assert from "node:assert/strict";
import { test } from "node:test";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { commonUser } from "./pod-user.ts";

const as = (name: string, runAsUser?: number) => ({
  name,
  image: "x",
  ...(runAsUser !== undefined && { securityContext: { runAsUser } }),
});

test("the one user of a pod's containers; a debugger that comes later does not count", () => {
  const spec = { containers: [as("a", 7), as("b", 7)], initContainers: [as("i", 7)] };
  assert.equal(commonUser(podWithVolumes([], spec)), 7);
  assert.equal(commonUser(podWithVolumes([], { ...spec, ephemeralContainers: [as("debug"), as("root", 0)] })), 7);
  assert.equal(commonUser(podWithVolumes([], { ...spec, initContainers: [as("i", 8)] })), undefined);
  assert.equal(commonUser(podWithVolumes([], { containers: [as("a")] })), undefined);
  const securityContext = { runAsUser: 9 };
  assert.equal(commonUser(podWithVolumes([], { containers: [as("a")], securityContext })), 9);
});
