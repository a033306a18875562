import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiClient, at, textAt } from "./client.ts";
import { boundPod, type Cluster } from "./subject.ts";

/** Tokens, reviews, and what a node may see. */
export function identityContract(cluster: Cluster): void {
  const nodeName = "contract-node";

  async function tokenFor(pod: unknown, spec: object = {}): Promise<{ code: number; body: unknown }> {
    const boundObjectRef = {
      kind: "Pod",
      apiVersion: "v1",
      name: at(pod, "metadata", "name"),
      uid: at(pod, "metadata", "uid"),
    };
    return await cluster.client.post(`${cluster.path("serviceaccounts")}/default/token`, {
      spec: { boundObjectRef, ...spec },
    });
  }

  async function review(token: string, audiences?: readonly string[]): Promise<unknown> {
    const spec = { token, ...(audiences !== undefined && { audiences }) };
    const { code, body } = await cluster.client.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec });
    assert.equal(code, 201);
    return at(body, "status");
  }

  describe("identities", () => {
    test("a token speaks for its account and its pod", async () => {
      const { body: pod } = await cluster.client.post(cluster.path("pods"), boundPod("speaker"));
      const { code, body } = await tokenFor(pod, { expirationSeconds: 3607 });
      assert.equal(code, 201, JSON.stringify(body));
      const lifetimeMs = Date.parse(textAt(body, "status", "expirationTimestamp")) - Date.now();
      assert.ok(lifetimeMs > 3_000_000 && lifetimeMs <= 3_607_000, `the token lives for ${lifetimeMs} ms`);
      const token = textAt(body, "status", "token");
      const status = await review(token);
      assert.equal(at(status, "authenticated"), true);
      assert.equal(at(status, "user", "username"), `system:serviceaccount:${cluster.namespace}:default`);
      assert.deepEqual(at(status, "user", "groups"), [
        "system:serviceaccounts",
        `system:serviceaccounts:${cluster.namespace}`,
        "system:authenticated",
      ]);
      assert.deepEqual(at(status, "user", "extra", "authentication.kubernetes.io/pod-name"), ["speaker"]);
    });

    test("a token is good for the audiences it was asked for", async () => {
      const { body: pod } = await cluster.client.post(cluster.path("pods"), boundPod("audience"));
      const { body } = await tokenFor(pod, { audiences: ["vault"] });
      const token = textAt(body, "status", "token");
      assert.notEqual(at(await review(token), "authenticated"), true);
      const status = await review(token, ["vault", "other"]);
      assert.equal(at(status, "authenticated"), true);
      assert.deepEqual(at(status, "audiences"), ["vault"]);
    });

    test("tokens shorter than ten minutes or for another pod are refused", async () => {
      const { body: pod } = await cluster.client.post(cluster.path("pods"), boundPod("impatient"));
      assert.equal((await tokenFor(pod, { expirationSeconds: 599 })).code, 422);
      const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "impatient", uid: "another" };
      assert.equal((await tokenFor(pod, { boundObjectRef })).code, 409);
    });

    test("an invalid token is nobody's, and gets nobody in", async () => {
      const status = await review("nonsense");
      assert.notEqual(at(status, "authenticated"), true);
      const { server, caPem } = cluster.subject.admin;
      using stranger = new ApiClient({ server, caPem, token: "nonsense" });
      const { code, body } = await stranger.get("/api/v1/nodes");
      assert.equal(code, 401);
      assert.equal(at(body, "reason"), "Unauthorized");
    });

    test("who shows nothing may ask for the version and no more", async () => {
      const { server, caPem } = cluster.subject.admin;
      using anonymous = new ApiClient({ server, caPem });
      assert.equal((await anonymous.get("/version")).code, 200);
      const { code, body } = await anonymous.get(cluster.path("secrets"));
      assert.equal(code, 403);
      assert.match(textAt(body, "message"), /User "system:anonymous" cannot list resource "secrets"/);
    });

    test("an access review answers for masters and for strangers", async () => {
      const ask = async (groups: readonly string[]): Promise<unknown> => {
        const resourceAttributes = { verb: "get", resource: "nodes", subresource: "proxy", name: "n" };
        const spec = { user: "someone", groups, resourceAttributes };
        const { code, body } = await cluster.client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
          spec,
        });
        assert.equal(code, 201);
        return at(body, "status", "allowed");
      };
      assert.equal(await ask(["system:masters"]), true);
      assert.equal(await ask(["strangers"]), false);
    });

    test("a node sees its own pods and what they refer to, and no others", async (context) => {
      if (cluster.subject.node === undefined) return context.skip("no credentials of a node");
      using node = new ApiClient(await cluster.subject.node(nodeName));
      const secret = (name: string): Promise<unknown> =>
        cluster.client.post(cluster.path("secrets"), { metadata: { name } });
      await secret("used");
      await secret("unused");
      const volumes = [{ name: "v", secret: { secretName: "used" } }];
      await cluster.client.post(cluster.path("pods"), boundPod("referring", { volumes }));
      await cluster.client.post(cluster.path("pods"), boundPod("foreign", { nodeName: "another-node" }));
      const get = async (path: string): Promise<number> => (await node.get(path)).code;
      assert.equal(await get(`/api/v1/pods?fieldSelector=spec.nodeName%3D${nodeName}`), 200);
      assert.equal(await get("/api/v1/pods?fieldSelector=spec.nodeName%3Danother-node"), 403);
      assert.equal(await get("/api/v1/pods"), 403);
      assert.equal(await get(`${cluster.path("pods")}/referring`), 200);
      assert.equal(await get(`${cluster.path("pods")}/foreign`), 403);
      assert.equal(await get(`${cluster.path("secrets")}/used`), 200);
      assert.equal(await get(`${cluster.path("secrets")}/unused`), 403);
      assert.equal(await get(cluster.path("secrets")), 403);
      assert.equal(await get(`${cluster.path("configmaps")}/kube-root-ca.crt`), 200);
      assert.equal(await get("/api/v1/services"), 200);
      assert.equal(await get(`/api/v1/nodes/another-node`), 403);
      const status = { status: { phase: "Running" } };
      assert.equal((await node.patch(`${cluster.path("pods")}/referring/status`, status)).code, 200);
      const refused = await node.patch(`${cluster.path("pods")}/foreign/status`, status);
      assert.equal(refused.code, 403);
      assert.match(
        textAt(refused.body, "message"),
        /can only update .*pods? .*spec\.nodeName set to itself|can only update pod status/,
      );
    });

    test("a node makes no pod that would let it read more", async (context) => {
      if (cluster.subject.node === undefined) return context.skip("no credentials of a node");
      const name = `${cluster.namespace}-mirror`;
      using node = new ApiClient(await cluster.subject.node(name));
      const { body: own } = await node.post("/api/v1/nodes", { metadata: { name } });
      await cluster.client.post(cluster.path("secrets"), { metadata: { name: "coveted" } });
      const ownerReferences = [
        { apiVersion: "v1", kind: "Node", name, uid: textAt(own, "metadata", "uid"), controller: true },
      ];
      const annotations = { "kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file" };
      const mirror = (spec: object): Promise<{ code: number; body: unknown }> =>
        node.post(cluster.path("pods"), {
          metadata: { name: "self-made", annotations, ownerReferences },
          spec: { nodeName: name, containers: [{ name: "main", image: "registry.invalid/none:1" }], ...spec },
        });
      const source = (volume: object): object => ({ volumes: [{ name: "v", ...volume }] });
      const env = (fields: object): object => ({
        containers: [{ name: "main", image: "registry.invalid/none:1", ...fields }],
      });
      for (const spec of [
        { serviceAccountName: "default" },
        { imagePullSecrets: [{ name: "coveted" }] },
        source({ secret: { secretName: "coveted" } }),
        source({ configMap: { name: "kube-root-ca.crt" } }),
        source({ persistentVolumeClaim: { claimName: "coveted" } }),
        source({ ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: {} } } } }),
        source({ csi: { driver: "d.example.com", nodePublishSecretRef: { name: "coveted" } } }),
        source({ projected: { sources: [{ secret: { name: "coveted" } }] } }),
        source({ projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }),
        env({ envFrom: [{ secretRef: { name: "coveted" } }] }),
        env({ env: [{ name: "A", valueFrom: { secretKeyRef: { name: "coveted", key: "a" } } }] }),
        { resourceClaims: [{ name: "c", resourceClaimName: "coveted" }] },
      ]) {
        const { code, body } = await mirror(spec);
        assert.equal(code, 403, JSON.stringify([spec, body]));
      }
      assert.equal((await mirror({})).code, 201);
      // One that an administrator made all the same gives the node no leave either.
      await cluster.client.post(cluster.path("pods"), {
        metadata: { name: "by-hand", annotations },
        spec: {
          nodeName: name,
          containers: [{ name: "main", image: "registry.invalid/none:1" }],
          ...source({ secret: { secretName: "coveted" } }),
        },
      });
      assert.equal((await node.get(`${cluster.path("secrets")}/coveted`)).code, 403);
      await cluster.client.delete(`/api/v1/nodes/${name}`);
    });

    test("what a node selects does not widen what it names", async (context) => {
      if (cluster.subject.node === undefined) return context.skip("no credentials of a node");
      using node = new ApiClient(await cluster.subject.node(nodeName));
      await cluster.client.post(cluster.path("pods"), boundPod("elsewhere", { nodeName: "another-node" }));
      const selected = encodeURIComponent(`metadata.name=${nodeName}`);
      const assigned = encodeURIComponent(`spec.nodeName=${nodeName}`);
      for (const path of [
        `/api/v1/nodes/another-node?fieldSelector=${selected}`,
        `/api/v1/nodes/another-node?watch=1&fieldSelector=${selected}`,
        `${cluster.path("pods")}/elsewhere?fieldSelector=${assigned}`,
        `/api/v1/nodes`,
        `${cluster.path("persistentvolumeclaims")}?fieldSelector=metadata.name%3Da`,
        "/api/v1/persistentvolumes",
        "/apis/storage.k8s.io/v1/volumeattachments",
        "/apis/storage.k8s.io/v1/volumeattachments/nobody",
        "/apis/storage.k8s.io/v1/csinodes",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
      ]) {
        assert.equal((await node.get(path)).code, 403, path);
      }
    });

    test("a node reports on the claims of its pods alone, and their size alone", async (context) => {
      if (cluster.subject.node === undefined) return context.skip("no credentials of a node");
      using node = new ApiClient(await cluster.subject.node(nodeName));
      const claims = cluster.path("persistentvolumeclaims");
      const spec = {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "",
      };
      for (const name of ["own-claim", "foreign-claim"])
        await cluster.client.post(claims, { metadata: { name }, spec });
      const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "own-claim" } }];
      await cluster.client.post(cluster.path("pods"), boundPod("claiming", { volumes }));
      const report = { status: { capacity: { storage: "9Ti" } } };
      assert.equal((await node.patch(`${claims}/foreign-claim/status`, report)).code, 403);
      assert.equal((await node.patch(`${claims}/own-claim/status`, report)).code, 200);
      assert.equal((await node.patch(`${claims}/own-claim/status`, { status: { phase: "Bound" } })).code, 403);
      const relabelled = { metadata: { labels: { a: "b" } } };
      assert.equal((await node.patch(`${claims}/own-claim/status`, relabelled)).code, 403);
    });

    test("a token ends with the secret it is bound to", async () => {
      const { body: secret } = await cluster.client.post(cluster.path("secrets"), { metadata: { name: "binding" } });
      const boundObjectRef = { kind: "Secret", apiVersion: "v1", name: "binding", uid: at(secret, "metadata", "uid") };
      const { body } = await tokenFor(secret, { boundObjectRef });
      const token = textAt(body, "status", "token");
      assert.equal(at(await review(token), "authenticated"), true);
      await cluster.client.delete(`${cluster.path("secrets")}/binding`);
      assert.notEqual(at(await review(token), "authenticated"), true);
    });

    test("a node registers itself alone, and with harmless labels alone", async (context) => {
      if (cluster.subject.node === undefined) return context.skip("no credentials of a node");
      const name = `${cluster.namespace}-self`;
      using node = new ApiClient(await cluster.subject.node(name));
      assert.equal((await node.post("/api/v1/nodes", { metadata: { name: "impostor" } })).code, 403);
      const labels = { "node-restriction.kubernetes.io/tier": "x" };
      assert.equal((await node.post("/api/v1/nodes", { metadata: { name, labels } })).code, 403);
      const created = await node.post("/api/v1/nodes", { metadata: { name, labels: { "kubernetes.io/os": "linux" } } });
      assert.equal(created.code, 201, JSON.stringify(created.body));
      const tainted = { spec: { taints: [{ key: "a", effect: "NoSchedule" }] } };
      assert.equal((await node.patch(`/api/v1/nodes/${name}`, tainted)).code, 403);
      const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
      assert.equal((await node.post(leases, { metadata: { name: "impostor" }, spec: {} })).code, 403);
      assert.equal((await node.post(leases, { metadata: { name }, spec: {} })).code, 201);
      await cluster.client.delete(`/api/v1/nodes/${name}`);
      await cluster.client.delete(`${leases}/${name}`);
    });
  });
}
