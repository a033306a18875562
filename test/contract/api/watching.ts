import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, textAt, type WatchEvent } from "./client.ts";
import { type Cluster, configMap } from "./subject.ts";

/** Watches: what they begin with, what they tell, when they must be begun anew. */
export function watchContract(cluster: Cluster): void {
  const said = ({ type, object }: WatchEvent): string => `${type} ${textAt(object, "metadata", "name")}`;

  async function take(path: string, count: number): Promise<readonly WatchEvent[]> {
    const events: WatchEvent[] = [];
    for await (const event of cluster.client.watch(path)) {
      events.push(event);
      if (events.length === count) break;
    }
    return events;
  }

  describe("watches", () => {
    test("a watch from a list's version tells each later change, in order", async () => {
      const { client } = cluster;
      const list = await client.get(cluster.path("configmaps"));
      const version = textAt(list.body, "metadata", "resourceVersion");
      await client.post(cluster.path("configmaps"), configMap("w1"));
      await client.patch(`${cluster.path("configmaps")}/w1`, { data: { a: "1" } });
      await client.delete(`${cluster.path("configmaps")}/w1`);
      const events = await take(`${cluster.path("configmaps")}?watch=1&resourceVersion=${version}`, 3);
      assert.deepEqual(events.map(said), ["ADDED w1", "MODIFIED w1", "DELETED w1"]);
      const versions = events.map(({ object }) => Number(textAt(object, "metadata", "resourceVersion")));
      assert.deepEqual(
        versions,
        versions.toSorted((a, b) => a - b),
      );
      assert.equal(new Set(versions).size, 3);
    });

    test("a watch from a version that is yet to come is not answered as if nothing had happened", async (context) => {
      // A kube-apiserver waits for the version; this one can't have forgotten what it answered.
      if (cluster.subject.compact === undefined) return context.skip("waits for the version");
      const list = await cluster.client.get(cluster.path("configmaps"));
      const future = Number(textAt(list.body, "metadata", "resourceVersion")) + 100;
      for (const query of ["", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"]) {
        const [event] = await take(`${cluster.path("configmaps")}?watch=1&resourceVersion=${future}${query}`, 1);
        assert.equal(event?.type, "ERROR");
        assert.equal(at(event?.object, "code"), 410);
      }
      const token = Buffer.from(JSON.stringify({ after: "", revision: future })).toString("base64url");
      const page = await cluster.client.get(`${cluster.path("configmaps")}?limit=1&continue=${token}`);
      assert.equal(page.code, 410);
    });

    test("a watch without a version begins with what there is", async () => {
      await cluster.client.post(cluster.path("secrets"), { metadata: { name: "there", labels: { watched: "y" } } });
      const [event] = await take(`${cluster.path("secrets")}?watch=1&labelSelector=watched%3Dy`, 1);
      assert.ok(event);
      assert.equal(said(event), "ADDED there");
    });

    test("what begins to match a selector is added, what ceases to is deleted", async () => {
      const { client } = cluster;
      const list = await client.get(cluster.path("configmaps"));
      const version = textAt(list.body, "metadata", "resourceVersion");
      await client.post(cluster.path("configmaps"), configMap("m1"));
      await client.patch(`${cluster.path("configmaps")}/m1`, { metadata: { labels: { on: "y" } } });
      await client.patch(`${cluster.path("configmaps")}/m1`, { data: { a: "1" } });
      await client.patch(`${cluster.path("configmaps")}/m1`, { metadata: { labels: { on: null } } });
      const path = `${cluster.path("configmaps")}?watch=1&labelSelector=on%3Dy&resourceVersion=${version}`;
      const events = await take(path, 3);
      assert.deepEqual(events.map(said), ["ADDED m1", "MODIFIED m1", "DELETED m1"]);
      assert.equal(at(events[2]?.object, "metadata", "labels", "on"), "y");
    });

    test("a watch can begin with the state and a bookmark at its end", async () => {
      await cluster.client.post(cluster.path("secrets"), { metadata: { name: "first", labels: { streamed: "y" } } });
      const query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
      const events = await take(`${cluster.path("secrets")}?${query}&labelSelector=streamed%3Dy`, 2);
      assert.deepEqual(
        events.map(({ type }) => type),
        ["ADDED", "BOOKMARK"],
      );
      assert.equal(at(events[1]?.object, "metadata", "annotations", "k8s.io/initial-events-end"), "true");
      assert.ok(Number(textAt(events[1]?.object, "metadata", "resourceVersion")) > 0);
    });

    test("a watch ends when its time is up", async () => {
      const events = await take(`${cluster.path("secrets")}?watch=1&timeoutSeconds=1&labelSelector=none%3Dy`, 1);
      assert.deepEqual(events, []);
    });

    test("a version that is forgotten answers 410 inside the stream", async (context) => {
      if (cluster.subject.compact === undefined) return context.skip("this server can't be made to forget");
      const list = await cluster.client.get(cluster.path("configmaps"));
      const version = textAt(list.body, "metadata", "resourceVersion");
      await cluster.client.post(cluster.path("configmaps"), configMap("later"));
      cluster.subject.compact();
      const [event] = await take(`${cluster.path("configmaps")}?watch=1&resourceVersion=${version}`, 1);
      assert.equal(event?.type, "ERROR");
      assert.equal(at(event.object, "code"), 410);
      assert.equal(at(event.object, "reason"), "Expired");
    });

    test("a list at a version from the future is refused as a timeout", async () => {
      const { code, body } = await cluster.client.get(`${cluster.path("configmaps")}?resourceVersion=9999999999`);
      assert.equal(code, 504);
      assert.equal(at(body, "details", "causes", 0, "reason"), "ResourceVersionTooLarge");
    });
  });
}
