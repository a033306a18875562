import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { noResizeLimits } from "../../../test/support/test-engine.ts";
import { type Container, configSourceAnnotation, type IdentifiedPod } from "../../ground/model/index.ts";
import type { AdmissionVerdict } from "./admission.ts";
import { asksForNoMore, decideResize, type ResizeSettings } from "./resize-decision.ts";

const asking = (
  requests: Readonly<Record<string, string>>,
  limits = requests,
  more: Partial<Container> = {},
): IdentifiedPod => testPod({ containers: [testContainer("main", { resources: { requests, limits }, ...more })] });
const static_ = (pod: IdentifiedPod): IdentifiedPod => ({
  ...pod,
  metadata: { ...pod.metadata, annotations: { [configSourceAnnotation]: "file" } },
});
const small = { cpu: "100m", memory: "64Mi" };
const large = { cpu: "200m", memory: "128Mi" };
const admitted: AdmissionVerdict = { type: "admitted" };
const full: AdmissionVerdict = { type: "rejected", reason: "OutOfmemory", message: "there is no memory left" };
const restartForMemory: Partial<Container> = {
  resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }],
};
const pinned = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
const pinnedMemory = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"';

interface Row {
  readonly what: string;
  readonly running?: IdentifiedPod;
  readonly wanted?: IdentifiedPod;
  readonly settings?: Partial<ResizeSettings>;
  readonly verdict?: AdmissionVerdict;
  readonly says: string;
}

const rows: readonly Row[] = [
  { what: "nothing changes", wanted: asking(small), says: "none" },
  { what: "the same in other words", wanted: asking({ cpu: "0.1", memory: "65536Ki" }), says: "none" },
  { what: "there is room", says: "accepted" },
  { what: "there is none", verdict: full, says: "deferred: there is no memory left" },
  {
    what: "nobody knows yet",
    verdict: { type: "undecided", waitsFor: "the Node" },
    says: "deferred: waiting for the Node",
  },
  {
    what: "the gate is off",
    settings: { isEnabled: false },
    says: "infeasible feature_gate_off: InPlacePodVerticalScaling is disabled",
  },
  {
    what: "a static pod",
    running: static_(asking(small)),
    wanted: static_(asking(large)),
    says: "infeasible static_pod: In-place resize of static-pods is not supported",
  },
  {
    what: "a container that may swap",
    settings: { mayUseSwap: () => true },
    says: "infeasible swap_limitation: In-place resize of containers with swap is not supported.",
  },
  {
    what: "a container that may swap, of which only the CPUs change",
    wanted: asking({ ...small, cpu: "1" }),
    settings: { mayUseSwap: () => true },
    says: "accepted",
  },
  {
    what: "a container that may swap, and restarts for its memory",
    running: asking(small, small, restartForMemory),
    wanted: asking(large, large, restartForMemory),
    settings: { mayUseSwap: () => true },
    says: "accepted",
  },
  {
    what: "exclusive CPUs",
    settings: { pinsCpus: true },
    says: `infeasible guaranteed_pod_cpu_manager_static_policy: ${pinned}`,
  },
  {
    what: "exclusive CPUs, of which none change",
    wanted: asking({ ...small, memory: "1Gi" }),
    settings: { pinsCpus: true },
    says: "accepted",
  },
  {
    what: "shared CPUs of a pod that is not Guaranteed",
    running: asking(small, { cpu: "1", memory: "1Gi" }),
    wanted: asking(large, { cpu: "1", memory: "1Gi" }),
    settings: { pinsCpus: true, pinsMemory: true },
    says: "accepted",
  },
  {
    what: "memory of a NUMA node",
    settings: { pinsMemory: true },
    says: `infeasible guaranteed_pod_memory_manager_static_policy: ${pinnedMemory}`,
  },
  {
    what: "more memory than the node has for all pods",
    settings: { allocatable: () => new Map([["memory", 100n * 1024n * 1024n * 1_000_000_000n]]) },
    says: "infeasible insufficient_node_allocatable: Node didn't have enough capacity: memory, requested: 134217728, capacity: 104857600",
  },
  {
    what: "more CPUs than the node has for all pods",
    settings: { allocatable: () => new Map([["cpu", 150_000_000n]]) },
    says: "infeasible insufficient_node_allocatable: Node didn't have enough capacity: cpu, requested: 200, capacity: 150",
  },
];

describe("whether a running pod may have other resources", () => {
  for (const { what, running = asking(small), wanted = asking(large), settings, verdict = admitted, says } of rows) {
    test(what, () => {
      const found = decideResize({ running, wanted }, { ...noResizeLimits, ...settings }, () => verdict);
      const detail = found.type === "infeasible" ? ` ${found.detail}` : "";
      const message = "message" in found ? `: ${found.message}` : "";
      assert.equal(`${found.type}${detail}${message}`, says);
    });
  }
});

test("who asks for less of everything needs no room", () => {
  assert.equal(asksForNoMore(asking(large), asking(small)), true);
  assert.equal(asksForNoMore(asking(small), asking(small)), true);
  assert.equal(asksForNoMore(asking(small), asking({ cpu: "50m", memory: "1Gi" })), false);
});
