import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { at, textAt } from "./client.ts";
import type { Cluster } from "./subject.ts";

/** The objects a node keeps: itself, its lease, its CSINode, its events. */
export function nodeObjectContract(cluster: Cluster): void {
  const nodeName = `${cluster.namespace}-node`;
  const nodePath = `/api/v1/nodes/${nodeName}`;
  const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

  describe("objects of a node", () => {
    after(async () => {
      await cluster.client.delete(nodePath);
      await cluster.client.delete(`${leases}/${nodeName}`);
      await cluster.client.delete(`/apis/storage.k8s.io/v1/csinodes/${nodeName}`);
    });

    test("a node registers with its status", async () => {
      const { code, body } = await cluster.client.post("/api/v1/nodes", {
        metadata: { name: nodeName, labels: { "kubernetes.io/hostname": nodeName } },
        spec: { taints: [{ key: "a", effect: "NoSchedule" }] },
        status: {
          capacity: { cpu: "2", memory: "1024Mi" },
          conditions: [{ type: "Ready", status: "False", reason: "KubeletNotReady", message: "starting" }],
          addresses: [
            { type: "InternalIP", address: "10.0.0.1" },
            { type: "Hostname", address: nodeName },
          ],
        },
      });
      assert.equal(code, 201, JSON.stringify(body));
      assert.equal(at(body, "status", "capacity", "memory"), "1Gi");
      assert.equal(at(body, "status", "addresses", 0, "address"), "10.0.0.1");
      assert.equal((await cluster.client.post("/api/v1/nodes", { metadata: { name: nodeName } })).code, 409);
    });

    test("a status patch reaches labels, annotations and status, and nothing of the spec", async () => {
      const { code, body } = await cluster.client.patch(`${nodePath}/status`, {
        metadata: { labels: { "example.com/x": "y" }, annotations: { n: "1" } },
        spec: { unschedulable: true },
        status: { conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }] },
      });
      assert.equal(code, 200);
      assert.equal(at(body, "metadata", "labels", "example.com/x"), "y");
      assert.equal(at(body, "spec", "unschedulable"), undefined);
      const conditions = at(body, "status", "conditions") as object[];
      assert.equal(conditions.length, 1);
      assert.equal(at(conditions[0], "status"), "True");
      assert.equal(at(conditions[0], "message"), "starting");
    });

    test("addresses can be replaced whole, two of a type", async () => {
      const addresses = [
        { type: "InternalIP", address: "10.0.0.2" },
        { type: "InternalIP", address: "fd00::2" },
        { type: "Hostname", address: nodeName },
      ];
      const patch = { status: { addresses: [...addresses, { $patch: "replace" }] } };
      const { body } = await cluster.client.patch(`${nodePath}/status`, patch);
      assert.deepEqual(at(body, "status", "addresses"), addresses);
    });

    test("a watch on a node's own name sees its changes", async () => {
      const { body } = await cluster.client.get(`/api/v1/nodes?fieldSelector=metadata.name%3D${nodeName}`);
      assert.equal((at(body, "items") as object[]).length, 1);
      const version = textAt(body, "metadata", "resourceVersion");
      await cluster.client.patch(nodePath, { metadata: { annotations: { seen: "yes" } } });
      const path = `/api/v1/nodes?watch=1&fieldSelector=metadata.name%3D${nodeName}&resourceVersion=${version}`;
      for await (const { type, object } of cluster.client.watch(path)) {
        assert.equal(type, "MODIFIED");
        assert.equal(at(object, "metadata", "annotations", "seen"), "yes");
        break;
      }
    });

    test("a lease is renewed by PUT of what was read; an old version conflicts, none is refused", async () => {
      const spec = { holderIdentity: nodeName, leaseDurationSeconds: 40, renewTime: "2026-01-01T00:00:00.000000Z" };
      const created = await cluster.client.post(leases, { metadata: { name: nodeName }, spec });
      assert.equal(created.code, 201);
      assert.equal(at(created.body, "spec", "renewTime"), "2026-01-01T00:00:00.000000Z");
      const renewed = { ...(created.body as object), spec: { ...spec, renewTime: "2026-01-01T00:00:10.123456Z" } };
      const first = await cluster.client.put(`${leases}/${nodeName}`, renewed);
      assert.equal(first.code, 200);
      assert.equal(at(first.body, "spec", "renewTime"), "2026-01-01T00:00:10.123456Z");
      assert.equal((await cluster.client.put(`${leases}/${nodeName}`, renewed)).code, 409);
      const blind = await cluster.client.put(`${leases}/${nodeName}`, { metadata: { name: nodeName }, spec });
      assert.equal(blind.code, 422);
      assert.match(
        textAt(blind.body, "message"),
        /metadata\.resourceVersion: Invalid value.*must be specified for an update/,
      );
    });

    test("a CSINode is created and found", async () => {
      const path = "/apis/storage.k8s.io/v1/csinodes";
      const body = { metadata: { name: nodeName }, spec: { drivers: [] } };
      assert.equal((await cluster.client.post(path, body)).code, 201);
      assert.equal((await cluster.client.get(`${path}/${nodeName}`)).code, 200);
    });

    test("an event is created, counted up by a patch, and seen in both groups", async () => {
      const event = {
        metadata: { name: "web.1" },
        involvedObject: { kind: "Pod", namespace: cluster.namespace, name: "web", fieldPath: "spec.containers{main}" },
        reason: "Pulled",
        message: "done",
        source: { component: "kubelet", host: nodeName },
        type: "Normal",
        count: 1,
        firstTimestamp: "2026-01-01T00:00:00Z",
        lastTimestamp: "2026-01-01T00:00:00Z",
      };
      assert.equal((await cluster.client.post(cluster.path("events"), event)).code, 201);
      const patched = await cluster.client.patch(`${cluster.path("events")}/web.1`, {
        count: 2,
        lastTimestamp: "2026-01-01T00:01:00Z",
      });
      assert.equal(at(patched.body, "count"), 2);
      const selector = "fieldSelector=involvedObject.name%3Dweb,reason%3DPulled";
      const { body } = await cluster.client.get(`${cluster.path("events")}?${selector}`);
      assert.equal((at(body, "items") as object[]).length, 1);
      const named = await cluster.client.get(`/apis/events.k8s.io/v1/namespaces/${cluster.namespace}/events/web.1`);
      assert.equal(at(named.body, "apiVersion"), "events.k8s.io/v1");
      assert.equal(at(named.body, "note"), "done");
      assert.equal(at(named.body, "regarding", "fieldPath"), "spec.containers{main}");
      assert.equal(at(named.body, "deprecatedCount"), 2);
    });
  });
}
