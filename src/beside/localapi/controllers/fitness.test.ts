import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Node, Pod } from "../../../ground/model/index.ts";
import { unfitness } from "./fitness.ts";

const ready = { conditions: [{ type: "Ready", status: "True" }] };
const node = (spec: Node["spec"] = {}, status: object = ready): Node => ({
  metadata: { name: "n1", labels: { zone: "a", cpus: "8" } },
  spec,
  status,
});
const pod = (spec: Partial<NonNullable<Pod["spec"]>> = {}): Pod => ({ spec: { containers: [], ...spec } });
const affinity = (matchExpressions: object[], matchFields: object[] = []): Partial<NonNullable<Pod["spec"]>> =>
  ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions, matchFields }] },
      },
    },
  }) as Partial<NonNullable<Pod["spec"]>>;
const tainted = node({ taints: [{ key: "k", value: "v", effect: "NoSchedule" }] });
const taint = "node(s) had untolerated taint {k: v}";
const selector = "node(s) didn't match Pod's node affinity/selector";

describe("which node a pod may be put on", () => {
  for (const [title, candidate, where, expected] of [
    ["any ready node", pod(), node(), undefined],
    ["not one that is not ready", pod(), node({}, {}), "node(s) were not ready"],
    ["not one that is cordoned", pod(), node({ unschedulable: true }), "node(s) were unschedulable"],
    [
      "a cordoned one for who tolerates it",
      pod({ tolerations: [{ key: "node.kubernetes.io/unschedulable", operator: "Exists" }] }),
      node({ unschedulable: true }),
      undefined,
    ],
    ["not a tainted one", pod(), tainted, taint],
    [
      "a tainted one for who tolerates the value",
      pod({ tolerations: [{ key: "k", value: "v", effect: "NoSchedule" }] }),
      tainted,
      undefined,
    ],
    ["not for who tolerates another value", pod({ tolerations: [{ key: "k", value: "w" }] }), tainted, taint],
    [
      "not for who tolerates another effect",
      pod({ tolerations: [{ key: "k", operator: "Exists", effect: "NoExecute" }] }),
      tainted,
      taint,
    ],
    ["a tainted one for who tolerates everything", pod({ tolerations: [{ operator: "Exists" }] }), tainted, undefined],
    ["one that would rather not", pod(), node({ taints: [{ key: "k", effect: "PreferNoSchedule" }] }), undefined],
    ["one with the label", pod({ nodeSelector: { zone: "a" } }), node(), undefined],
    ["not one without", pod({ nodeSelector: { zone: "b" } }), node(), selector],
    [
      "by affinity",
      pod(
        affinity([
          { key: "zone", operator: "In", values: ["a", "b"] },
          { key: "cpus", operator: "Gt", values: ["4"] },
        ]),
      ),
      node(),
      undefined,
    ],
    ["not against it", pod(affinity([{ key: "zone", operator: "NotIn", values: ["a"] }])), node(), selector],
    ["by name", pod(affinity([], [{ key: "metadata.name", operator: "In", values: ["n1"] }])), node(), undefined],
    ["a term that asks nothing matches nothing", pod(affinity([])), node(), selector],
  ] as const) {
    test(title, () => assert.equal(unfitness(candidate, where), expected));
  }
});
