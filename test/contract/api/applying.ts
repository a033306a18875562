import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Answer, at } from "./client.ts";
import { type Cluster, configMap } from "./subject.ts";

/** Server-side apply, and what a kind of object does not let be changed. */
export function applyContract(cluster: Cluster): void {
  const path = (name: string): string => `${cluster.path("configmaps")}/${name}`;
  const apply = (name: string, manager: string, data: object, more = ""): Promise<Answer> => {
    const configuration = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
    return cluster.client.patch(`${path(name)}?fieldManager=${manager}${more}`, configuration, "apply");
  };

  describe("server-side apply", () => {
    test("what a manager names no more goes, what others set stays", async () => {
      assert.equal((await apply("dropped", "one", { a: "1", b: "2" })).code, 201);
      await cluster.client.patch(path("dropped"), { data: { c: "3" } }, "merge");
      const { code, body } = await apply("dropped", "one", { a: "1" });
      assert.equal(code, 200);
      assert.deepEqual(at(body, "data"), { a: "1", c: "3" });
    });

    test("what two managers name goes when neither does", async () => {
      await apply("shared", "one", { a: "1", b: "2" });
      await apply("shared", "two", { b: "2" });
      assert.deepEqual(at((await apply("shared", "one", { a: "1" })).body, "data"), { a: "1", b: "2" });
      assert.deepEqual(at((await apply("shared", "two", {})).body, "data"), { a: "1" });
    });

    test("another manager's field is not changed unless by force, and then it changes hands", async () => {
      await apply("fought", "one", { a: "1" });
      const refused = await apply("fought", "two", { a: "2" });
      assert.equal(refused.code, 409);
      assert.equal(at(refused.body, "message"), 'Apply failed with 1 conflict: conflict with "one": .data.a');
      assert.equal(at(refused.body, "details", "causes", 0, "reason"), "FieldManagerConflict");
      assert.deepEqual(at((await apply("fought", "two", { a: "2" }, "&force=true")).body, "data"), { a: "2" });
      assert.equal((await apply("fought", "one", { a: "3" })).code, 409);
      assert.deepEqual(at((await apply("fought", "one", {})).body, "data"), { a: "2" });
    });

    test("the same configuration once more changes nothing", async () => {
      const first = await apply("calm", "one", { a: "1" });
      const second = await apply("calm", "one", { a: "1" });
      const version = (answer: Answer): unknown => at(answer.body, "metadata", "resourceVersion");
      assert.equal(version(second), version(first));
    });

    test("items of a list belong to who named them", async () => {
      const pod = (containers: readonly object[]) => ({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "applied" },
        spec: { nodeName: "nowhere", containers },
      });
      const url = `${cluster.path("pods")}/applied?fieldManager=one`;
      await cluster.client.patch(url, pod([{ name: "a", image: "i:1" }]), "apply");
      const { body } = await cluster.client.patch(url, pod([{ name: "a", image: "i:2" }]), "apply");
      assert.equal(at(body, "spec", "containers", 0, "image"), "i:2");
      assert.equal(at(body, "spec", "containers", 0, "terminationMessagePolicy"), "File");
    });

    test("who applies must say who they are", async () => {
      const configuration = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "nameless" } };
      const { code, body } = await cluster.client.patch(path("nameless"), configuration, "apply");
      assert.equal(code, 422);
      assert.match(String(at(body, "message")), /fieldManager: Required value: is required for apply patch/);
    });
  });

  describe("what may not be", () => {
    test("an immutable config map stays as it is", async () => {
      await cluster.client.post(cluster.path("configmaps"), { ...configMap("fixed", { a: "1" }), immutable: true });
      const { code, body } = await cluster.client.patch(path("fixed"), { data: { a: "2" } }, "merge");
      assert.equal(code, 422);
      assert.match(String(at(body, "message")), /data: Forbidden: field is immutable when `immutable` is set/);
      assert.equal((await cluster.client.patch(path("fixed"), { immutable: false }, "merge")).code, 422);
      assert.equal(
        (await cluster.client.patch(path("fixed"), { metadata: { labels: { a: "b" } } }, "merge")).code,
        200,
      );
    });

    test("a key that is no file name is refused", async () => {
      const { code, body } = await cluster.client.post(cluster.path("configmaps"), configMap("keys", { "x/y": "1" }));
      assert.equal(code, 422);
      assert.match(
        String(at(body, "message")),
        /data\[x\/y\]: Invalid value: "x\/y": a valid config key must consist of/,
      );
    });

    test("a secret's data is base64", async () => {
      const { code, body } = await cluster.client.post(cluster.path("secrets"), {
        metadata: { name: "encoded" },
        data: { a: "%%" },
      });
      assert.equal(code, 400);
      assert.match(String(at(body, "message")), /illegal base64 data at input byte 0/);
    });

    test("a patch does not rename", async () => {
      await cluster.client.post(cluster.path("configmaps"), configMap("named"));
      const { code, body } = await cluster.client.patch(path("named"), { metadata: { name: "other" } }, "merge");
      assert.equal(code, 400);
      assert.match(String(at(body, "message")), /\(other\) does not match the name on the URL \(named\)/);
    });
  });
}
