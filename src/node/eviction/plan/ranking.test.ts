import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryPod, type RankedPod } from "../../../../test/support/eviction-plan.ts";
import type { EvictionSignal } from "../../../ground/config/index.ts";
import { ranked } from "./ranking.ts";

for (const { name, signal, pods, order } of [
  {
    name: "unmeasured, then over its request, then priority, then how far over",
    signal: "memory.available",
    pods: [
      { name: "within", request: 100, used: 90, priority: -10 },
      { name: "far-over", request: 10, used: 90 },
      { name: "over-important", request: 10, used: 900, priority: 1000 },
      { name: "a-bit-over", request: 80, used: 90 },
      { name: "unmeasured", priority: 5000 },
      { name: "within-important", request: 100, used: 10, priority: 1 },
    ],
    order: "unmeasured far-over a-bit-over over-important within within-important",
  },
  {
    name: "the class of a pod is no key: one with a request and over it goes before one without that uses less",
    signal: "allocatableMemory.available",
    pods: [
      { name: "besteffort", used: 5 },
      { name: "burstable", request: 10, used: 50 },
    ],
    order: "burstable besteffort",
  },
  {
    name: "processes: priority first, whoever is over what",
    signal: "pid.available",
    pods: [
      { name: "many-important", used: 900, priority: 10 },
      { name: "few", used: 10 },
      { name: "many", used: 20 },
      { name: "unmeasured" },
    ],
    order: "unmeasured many few many-important",
  },
  {
    name: "bytes on disk as memory",
    signal: "nodefs.available",
    pods: [
      { name: "within", request: 100, used: 90 },
      { name: "over", request: 10, used: 20 },
    ],
    order: "over within",
  },
  {
    name: "files: whoever has any is over; the bytes asked for are subtracted from the count",
    signal: "nodefs.inodesFree",
    pods: [
      { name: "none", used: 0 },
      { name: "asked-for-bytes", request: 1000, used: 500 },
      { name: "asked-for-none", used: 100 },
    ],
    order: "asked-for-none asked-for-bytes none",
  },
  {
    name: "equals stay in order",
    signal: "memory.available",
    pods: [
      { name: "b", used: 1 },
      { name: "a", used: 1 },
    ],
    order: "b a",
  },
] satisfies readonly { name: string; signal: EvictionSignal; pods: readonly RankedPod[]; order: string }[]) {
  test(`ranking: ${name}`, () => {
    const found = ranked(pods.map(memoryPod), signal, "one disk for all").map(({ item }) => item.pod.metadata.name);
    assert.equal(found.join(" "), order);
  });
}
