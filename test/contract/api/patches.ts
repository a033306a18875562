import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, textAt } from "./client.ts";
import { type Cluster, configMap } from "./subject.ts";

/** The four kinds of patches. */
export function patchContract(cluster: Cluster): void {
  const path = (name: string): string => `${cluster.path("configmaps")}/${name}`;

  describe("patches", () => {
    test("a merge patch sets, keeps and removes", async () => {
      await cluster.client.post(cluster.path("configmaps"), configMap("merged", { a: "1", b: "2" }));
      const { code, body } = await cluster.client.patch(path("merged"), { data: { a: null, c: "3" } }, "merge");
      assert.equal(code, 200);
      assert.deepEqual(at(body, "data"), { b: "2", c: "3" });
    });

    test("a JSON patch goes step by step, or not at all", async () => {
      await cluster.client.post(cluster.path("configmaps"), configMap("stepped", { a: "1" }));
      const good = [
        { op: "test", path: "/data/a", value: "1" },
        { op: "add", path: "/metadata/annotations", value: {} },
        { op: "add", path: "/metadata/annotations/example.com~1x", value: "2" },
        { op: "remove", path: "/data/a" },
      ];
      const { body } = await cluster.client.patch(path("stepped"), good, "json");
      assert.equal(at(body, "data"), undefined);
      assert.deepEqual(at(body, "metadata", "annotations"), { "example.com/x": "2" });
    });

    test("a JSON patch whose test fails is refused", async () => {
      await cluster.client.post(cluster.path("configmaps"), configMap("tested", { a: "1" }));
      const bad = [
        { op: "replace", path: "/data/a", value: "2" },
        { op: "test", path: "/data/a", value: "1" },
      ];
      const { code } = await cluster.client.patch(path("tested"), bad, "json");
      assert.equal(code, 422);
      assert.equal(at((await cluster.client.get(path("tested"))).body, "data", "a"), "1");
    });

    test("finalizers are merged as a set, and removed one by one", async () => {
      const metadata = { name: "finalizers", finalizers: ["example.com/a", "example.com/b"] };
      await cluster.client.post(cluster.path("configmaps"), { metadata });
      const added = await cluster.client.patch(path("finalizers"), { metadata: { finalizers: ["example.com/c"] } });
      assert.deepEqual(at(added.body, "metadata", "finalizers"), ["example.com/c", "example.com/a", "example.com/b"]);
      const removal = {
        metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b", "example.com/c"] },
      };
      const removed = await cluster.client.patch(path("finalizers"), removal);
      assert.equal(at(removed.body, "metadata", "finalizers") ?? null, null);
    });

    test("a version in a patch is a condition", async () => {
      const created = await cluster.client.post(cluster.path("configmaps"), configMap("conditional"));
      const resourceVersion = textAt(created.body, "metadata", "resourceVersion");
      const patch = { metadata: { resourceVersion }, data: { a: "1" } };
      assert.equal((await cluster.client.patch(path("conditional"), patch)).code, 200);
      assert.equal((await cluster.client.patch(path("conditional"), { ...patch, data: { a: "2" } })).code, 409);
    });

    test("apply creates, then merges", async () => {
      const apply = (data: object): Promise<{ code: number; body: unknown }> =>
        cluster.client.patch(
          `${path("applied")}?fieldManager=contract&force=true`,
          { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, data },
          "apply",
        );
      assert.equal((await apply({ a: "1" })).code, 201);
      const second = await apply({ a: "2", b: "3" });
      assert.equal(second.code, 200);
      assert.deepEqual(at(second.body, "data"), { a: "2", b: "3" });
    });

    test("a patch of an unknown type is refused, a patch of nothing is not found", async () => {
      const { code } = await cluster.client.patch(path("nothing"), {});
      assert.equal(code, 404);
    });
  });
}
