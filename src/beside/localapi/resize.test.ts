import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiClient, accessOf, at } from "../../../test/contract/api/client.ts";
import { startLocalApi } from "./start.ts";

const amounts = (cpu: string) => ({ requests: { cpu }, limits: { cpu, memory: "64Mi" } });
const pod = (name: string, nodeName: string) => ({
  metadata: { name },
  spec: {
    nodeName,
    resources: amounts("1"),
    initContainers: [{ name: "init", image: "i", resources: amounts("100m") }],
    containers: [{ name: "main", image: "i", resources: amounts("100m") }],
  },
});

test("what v1.34 refuses to resize is resized on a node that declares it, as later versions do", async () => {
  await using api = await startLocalApi({ binder: "off" });
  using client = new ApiClient(accessOf(await api.adminKubeconfig()));
  const declaredFeatures = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"];
  await client.post("/api/v1/nodes", { metadata: { name: "old" } });
  await client.post("/api/v1/nodes", { metadata: { name: "later" }, status: { declaredFeatures } });
  for (const name of ["old", "later"]) await client.post("/api/v1/namespaces/default/pods", pod(name, name));
  const resize = async (name: string, spec: object): Promise<string> => {
    const { code, body } = await client.patch(`/api/v1/namespaces/default/pods/${name}/resize`, { spec });
    return code === 200 ? "resized" : String(at(body, "message"));
  };
  const whole = { resources: amounts("2") };
  assert.match(await resize("old", whole), /pods with pod-level resources cannot be resized/);
  assert.equal(await resize("later", whole), "resized");
  const { body } = await client.get("/api/v1/namespaces/default/pods/later");
  assert.deepEqual(at(body, "spec", "resources", "limits"), { cpu: "2", memory: "64Mi" });
  assert.equal(at(body, "metadata", "generation"), 2);
  const init = { initContainers: [{ name: "init", resources: amounts("200m") }] };
  assert.match(await resize("old", init), /resources for non-sidecar init containers are immutable/);
  assert.equal(await resize("later", init), "resized");
  assert.match(
    await resize("later", { resources: { requests: { cpu: "2", memory: "32Mi" } } }),
    /Pod QOS Class may not change/,
  );
});
