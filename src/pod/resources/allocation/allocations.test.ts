import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../../test/support/pods.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { Allocations } from "./allocations.ts";

const asking = (cpu: string): IdentifiedPod =>
  testPod({ containers: [testContainer("main", { resources: { requests: { cpu } } })] });
const cpuOf = ({ spec }: IdentifiedPod): string | undefined => spec.containers[0]?.resources?.requests?.["cpu"];

test("a pod as it is run stays the same object as long as its promise, so that what is reckoned of it is kept", () => {
  const allocations = new Allocations("/nowhere/allocated_pods_state", { asPromise: () => undefined }, silentLogger);
  allocations.admit(asking("1"));
  const wanted = asking("2");
  const run = allocations.asRun(wanted);
  assert.equal(cpuOf(run), "1");
  assert.equal(allocations.asRun(wanted), run);
  assert.equal(allocations.asRun(run), run);
  allocations.resize(wanted);
  assert.equal(allocations.asRun(wanted), wanted);
  assert.equal(cpuOf(allocations.asRun(asking("3"))), "2");
});
