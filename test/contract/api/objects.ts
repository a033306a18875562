import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, textAt } from "./client.ts";
import { type Cluster, configMap } from "./subject.ts";

/** Creating, reading, listing, replacing and deleting, as for any kind. */
export function objectContract(cluster: Cluster): void {
  describe("objects", () => {
    test("a new object gets a uid, a time and a version, and can't be created twice", async () => {
      const { client } = cluster;
      const created = await client.post(cluster.path("configmaps"), configMap("new", { a: "1" }));
      assert.equal(created.code, 201);
      assert.match(textAt(created.body, "metadata", "uid"), /^[0-9a-f-]{36}$/);
      assert.match(textAt(created.body, "metadata", "creationTimestamp"), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.ok(Number(textAt(created.body, "metadata", "resourceVersion")) > 0);
      const again = await client.post(cluster.path("configmaps"), configMap("new"));
      assert.equal(again.code, 409);
      assert.equal(at(again.body, "reason"), "AlreadyExists");
      assert.equal(at(again.body, "message"), 'configmaps "new" already exists');
    });

    test("generateName makes up distinct names", async () => {
      const body = { metadata: { generateName: "made-up-" } };
      const first = await cluster.client.post(cluster.path("configmaps"), body);
      const second = await cluster.client.post(cluster.path("configmaps"), body);
      assert.match(textAt(first.body, "metadata", "name"), /^made-up-[a-z0-9]{5}$/);
      assert.notEqual(at(first.body, "metadata", "name"), at(second.body, "metadata", "name"));
    });

    test("what does not exist is not found, by name", async () => {
      const { code, body } = await cluster.client.get(`${cluster.path("configmaps")}/absent`);
      assert.equal(code, 404);
      assert.equal(at(body, "kind"), "Status");
      assert.equal(at(body, "reason"), "NotFound");
      assert.equal(at(body, "message"), 'configmaps "absent" not found');
      assert.deepEqual(at(body, "details"), { name: "absent", kind: "configmaps" });
    });

    test("an object in a namespace that does not exist is refused", async () => {
      const { code, body } = await cluster.client.post("/api/v1/namespaces/no-such/configmaps", configMap("x"));
      assert.equal(code, 404);
      assert.equal(at(body, "message"), 'namespaces "no-such" not found');
    });

    test("replacing from an old version conflicts, from the present one succeeds", async () => {
      const { client } = cluster;
      const path = `${cluster.path("configmaps")}/contested`;
      const first = await client.post(cluster.path("configmaps"), configMap("contested", { a: "1" }));
      const second = await client.put(path, { ...(first.body as object), data: { a: "2" } });
      assert.equal(second.code, 200);
      const late = await client.put(path, { ...(first.body as object), data: { a: "3" } });
      assert.equal(late.code, 409);
      assert.equal(at(late.body, "reason"), "Conflict");
      const blind = await client.put(path, configMap("contested", { a: "4" }));
      assert.equal(blind.code, 200);
      assert.equal(at(blind.body, "metadata", "uid"), at(first.body, "metadata", "uid"));
    });

    test("a write that changes nothing makes no new version", async () => {
      const { client } = cluster;
      const first = await client.post(cluster.path("configmaps"), configMap("still", { a: "1" }));
      const second = await client.put(`${cluster.path("configmaps")}/still`, first.body);
      assert.equal(at(second.body, "metadata", "resourceVersion"), at(first.body, "metadata", "resourceVersion"));
    });

    test("label and field selectors choose", async () => {
      const { client } = cluster;
      for (const [name, tier] of [
        ["s1", "a"],
        ["s2", "b"],
        ["s3", "c"],
      ] as const) {
        await client.post(cluster.path("secrets"), { metadata: { name, labels: { tier } } });
      }
      const names = async (query: string): Promise<unknown> => {
        const { body } = await client.get(`${cluster.path("secrets")}?${query}`);
        return (at(body, "items") as unknown[]).map((item) => at(item, "metadata", "name"));
      };
      assert.deepEqual(await names("labelSelector=tier%3Da"), ["s1"]);
      assert.deepEqual(await names("labelSelector=tier%20in%20(a,b)"), ["s1", "s2"]);
      assert.deepEqual(await names("labelSelector=tier,tier!%3Db"), ["s1", "s3"]);
      assert.deepEqual(await names("labelSelector=tier%20notin%20(a,b)"), ["s3"]);
      assert.deepEqual(await names("fieldSelector=metadata.name%3Ds2"), ["s2"]);
      const bad = await client.get(`${cluster.path("secrets")}?fieldSelector=data.x%3Dy`);
      assert.equal(bad.code, 400);
      assert.match(textAt(bad.body, "message"), /field label not supported: data\.x/);
    });

    test("a list in pages shows one moment, whatever changes meanwhile", async () => {
      const { client } = cluster;
      for (const index of [1, 2, 3, 4, 5]) {
        await client.post(cluster.path("configmaps"), {
          metadata: { name: `page-${index}`, labels: { paged: "yes" } },
        });
      }
      const path = `${cluster.path("configmaps")}?labelSelector=paged%3Dyes&limit=2`;
      const first = await client.get(path);
      await client.delete(`${cluster.path("configmaps")}/page-4`);
      const second = await client.get(`${path}&continue=${textAt(first.body, "metadata", "continue")}`);
      const third = await client.get(`${path}&continue=${textAt(second.body, "metadata", "continue")}`);
      const names = [first, second, third].flatMap(({ body }) => at(body, "items") as unknown[]);
      assert.deepEqual(
        names.map((item) => at(item, "metadata", "name")),
        ["page-1", "page-2", "page-3", "page-4", "page-5"],
      );
      assert.equal(at(third.body, "metadata", "continue") ?? "", "");
      const versions = [first, second, third].map(({ body }) => at(body, "metadata", "resourceVersion"));
      assert.equal(new Set(versions).size, 1);
    });

    test("a list of any version will do has the objects and a version to watch from", async () => {
      await cluster.client.post(cluster.path("configmaps"), configMap("cached"));
      const { code, body } = await cluster.client.get(`${cluster.path("configmaps")}?resourceVersion=0`);
      assert.equal(code, 200);
      assert.equal(at(body, "kind"), "ConfigMapList");
      assert.ok((at(body, "items") as unknown[]).length > 0);
      assert.ok(Number(textAt(body, "metadata", "resourceVersion")) > 0);
      assert.equal((await cluster.client.get(`${cluster.path("configmaps")}/cached?resourceVersion=0`)).code, 200);
    });

    test("a dry run answers as if and leaves no trace", async () => {
      const { code } = await cluster.client.post(`${cluster.path("configmaps")}?dryRun=All`, configMap("dry"));
      assert.equal(code, 201);
      assert.equal((await cluster.client.get(`${cluster.path("configmaps")}/dry`)).code, 404);
    });

    test("deletion heeds preconditions and finalizers", async () => {
      const { client } = cluster;
      const path = `${cluster.path("configmaps")}/kept`;
      const finalizers = ["example.com/keep"];
      const created = await client.post(cluster.path("configmaps"), { metadata: { name: "kept", finalizers } });
      const wrong = await client.delete(path, { preconditions: { uid: "other" } });
      assert.equal(wrong.code, 409);
      assert.match(textAt(wrong.body, "message"), /the UID in the precondition \(other\) does not match/);
      const uid = textAt(created.body, "metadata", "uid");
      const deleted = await client.delete(path, { preconditions: { uid } });
      assert.equal(deleted.code, 200);
      const waiting = await client.get(path);
      assert.ok(at(waiting.body, "metadata", "deletionTimestamp"));
      await client.patch(path, { metadata: { finalizers: null } }, "merge");
      assert.equal((await client.get(path)).code, 404);
    });

    test("unknown fields are warned of, or refused when asked to be strict", async () => {
      const body = { ...configMap("odd"), colour: "red" };
      const warned = await cluster.client.post(cluster.path("configmaps"), body);
      assert.equal(warned.code, 201);
      assert.match(String(warned.headers["warning"]), /unknown field \\"colour\\"/);
      assert.equal(at(warned.body, "colour"), undefined);
      const strict = await cluster.client.post(`${cluster.path("configmaps")}?fieldValidation=Strict`, body);
      assert.equal(strict.code, 400);
      assert.match(textAt(strict.body, "message"), /strict decoding error: unknown field "colour"/);
    });
  });
}
