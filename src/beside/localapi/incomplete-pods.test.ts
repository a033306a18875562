import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiClient, accessOf, at } from "../../../test/contract/api/client.ts";
import { startLocalApi } from "./start.ts";

const container = { name: "main", image: "i" };
const selector = { matchExpressions: [{ operator: "In", values: ["b"] }] };

/** Each lacks what its type must have, by absence or by null. */
const incomplete: readonly object[] = [
  { containers: null },
  { containers: [{ image: "i" }] },
  { containers: [{ name: null, image: "i" }] },
  { initContainers: [{ image: "i" }] },
  { containers: [{ ...container, env: [{ value: "a" }] }] },
  { containers: [{ ...container, env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s" } } }] }] },
  { containers: [{ ...container, livenessProbe: { httpGet: { path: "/" } } }] },
  { containers: [{ ...container, volumeDevices: [{ name: "v" }] }] },
  { volumes: [{ emptyDir: {} }] },
  { volumes: [{ name: "v", hostPath: {} }] },
  { volumes: [{ name: "v", secret: { secretName: "s", items: [{ key: "k" }] } }] },
  { volumes: [{ name: "v", csi: {} }] },
  { volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: {} } }] },
  { hostAliases: [{ hostnames: ["a"] }] },
  { readinessGates: [{}] },
  { schedulingGates: [{}] },
  { resourceClaims: [{}] },
  { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } } },
  { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: selector }] } } },
  { securityContext: { sysctls: [{ value: "1" }] } },
];

test("a pod that lacks what it must have is refused by name, and is nobody's fault but its own", async () => {
  await using api = await startLocalApi({ binder: "off" });
  using client = new ApiClient(accessOf(await api.adminKubeconfig()));
  for (const part of incomplete) {
    const spec = { containers: [container], ...part };
    const { code, body } = await client.post("/api/v1/namespaces/default/pods", { metadata: { name: "a" }, spec });
    assert.deepEqual([code, at(body, "reason")], [422, "Invalid"], JSON.stringify(part));
  }
});
