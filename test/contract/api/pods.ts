import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, textAt } from "./client.ts";
import { boundPod, type Cluster } from "./subject.ts";

/** Pods from their creation to their end. */
export function podContract(cluster: Cluster): void {
  const path = (name = ""): string => `${cluster.path("pods")}${name === "" ? "" : `/${name}`}`;

  async function create(name: string, spec: object = {}): Promise<unknown> {
    const { code, body } = await cluster.client.post(path(), boundPod(name, spec));
    assert.equal(code, 201, JSON.stringify(body));
    return body;
  }

  describe("pods", () => {
    test("a new pod is pending, with the defaults of the API", async () => {
      const pod = await create("defaults");
      assert.equal(at(pod, "status", "phase"), "Pending");
      assert.equal(at(pod, "status", "qosClass"), "BestEffort");
      assert.equal(at(pod, "metadata", "generation"), 1);
      assert.equal(at(pod, "spec", "restartPolicy"), "Always");
      assert.equal(at(pod, "spec", "terminationGracePeriodSeconds"), 30);
      assert.equal(at(pod, "spec", "dnsPolicy"), "ClusterFirst");
      assert.equal(at(pod, "spec", "priority"), 0);
      assert.equal(at(pod, "spec", "containers", 0, "imagePullPolicy"), "IfNotPresent");
      assert.deepEqual(
        (at(pod, "spec", "tolerations") as object[]).map((toleration) => at(toleration, "key")),
        ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
      );
    });

    test("a pod gets the default service account and a token volume in every container", async () => {
      const pod = await create("account");
      assert.equal(at(pod, "spec", "serviceAccountName"), "default");
      const volume = at(pod, "spec", "volumes", 0);
      assert.match(textAt(volume, "name"), /^kube-api-access-/);
      assert.deepEqual(
        (at(volume, "projected", "sources") as object[]).map((source) => Object.keys(source)[0]),
        ["serviceAccountToken", "configMap", "downwardAPI"],
      );
      assert.equal(at(volume, "projected", "sources", 0, "serviceAccountToken", "expirationSeconds"), 3607);
      assert.deepEqual(at(pod, "spec", "containers", 0, "volumeMounts", 0), {
        name: at(volume, "name"),
        readOnly: true,
        mountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
      });
      const config = await cluster.client.get(`${cluster.path("configmaps")}/kube-root-ca.crt`);
      assert.match(textAt(config.body, "data", "ca.crt"), /BEGIN CERTIFICATE/);
    });

    test("no token for a pod that wants none, no pod for an account that does not exist", async () => {
      const pod = await create("no-token", { automountServiceAccountToken: false });
      assert.equal(at(pod, "spec", "volumes"), undefined);
      const refused = await cluster.client.post(path(), boundPod("nobody", { serviceAccountName: "nobody" }));
      assert.equal(refused.code, 403);
      assert.match(textAt(refused.body, "message"), /serviceaccount "nobody" not found/);
    });

    test("a pod that can't be is refused with every problem named", async () => {
      const containers = [{ name: "Bad_Name", image: "x" }, { name: "b" }];
      const { code, body } = await cluster.client.post(path(), boundPod("invalid", { containers }));
      assert.equal(code, 422);
      assert.equal(at(body, "reason"), "Invalid");
      const fields = (at(body, "details", "causes") as object[]).map((cause) => at(cause, "field"));
      assert.deepEqual(fields, ["spec.containers[0].name", "spec.containers[1].image"]);
    });

    test("pods are selected by node, restart policy and phase", async () => {
      await create("elsewhere", { nodeName: "other-node" });
      const { body } = await cluster.client.get(
        `${path()}?fieldSelector=spec.nodeName%3Dother-node,status.phase%3DPending`,
      );
      assert.deepEqual(
        (at(body, "items") as object[]).map((item) => at(item, "metadata", "name")),
        ["elsewhere"],
      );
    });

    test("of a spec little may change: the image, not the command", async () => {
      await create("fixed");
      const image = await cluster.client.patch(path("fixed"), {
        spec: { containers: [{ name: "main", image: "other:1" }] },
      });
      assert.equal(image.code, 200);
      assert.equal(at(image.body, "metadata", "generation"), 2);
      const command = await cluster.client.patch(path("fixed"), {
        spec: { containers: [{ name: "main", command: ["x"] }] },
      });
      assert.equal(command.code, 422);
      assert.match(textAt(command.body, "message"), /pod updates may not change fields other than/);
    });

    test("the status is written apart from the rest", async () => {
      await create("reported");
      const sneaky = await cluster.client.patch(path("reported"), {
        status: { phase: "Running" },
        metadata: { labels: { a: "b" } },
      });
      assert.equal(at(sneaky.body, "status", "phase"), "Pending");
      const status = { status: { phase: "Running" }, spec: { nodeName: "x" }, metadata: { labels: { a: "c" } } };
      const reported = await cluster.client.patch(path("reported/status"), status);
      assert.equal(reported.code, 200);
      assert.equal(at(reported.body, "status", "phase"), "Running");
      assert.equal(at(reported.body, "status", "qosClass"), "BestEffort");
      assert.equal(at(reported.body, "spec", "nodeName"), "contract-node");
      assert.equal(at(reported.body, "metadata", "labels", "a"), "c");
      assert.equal(at(reported.body, "metadata", "generation"), 1);
    });

    test("a status for another incarnation of the pod is refused", async () => {
      await create("reborn");
      const patch = { metadata: { uid: "00000000-0000-0000-0000-000000000000" }, status: { phase: "Failed" } };
      const { code, body } = await cluster.client.patch(path("reborn/status"), patch);
      assert.ok(code === 409 || code === 422, `found ${code}`);
      assert.match(textAt(body, "message"), /uid|UID/);
      assert.equal(at((await cluster.client.get(path("reborn"))).body, "status", "phase"), "Pending");
    });

    test("conditions are merged by type and put in the order that the patch says", async () => {
      await create("conditions");
      const condition = (type: string, status: string): object => ({ type, status });
      await cluster.client.patch(path("conditions/status"), {
        status: { conditions: [condition("Foreign", "True"), condition("Ready", "False"), condition("Old", "True")] },
      });
      const { body } = await cluster.client.patch(path("conditions/status"), {
        status: {
          "$setElementOrder/conditions": [{ type: "Initialized" }, { type: "Ready" }, { type: "Foreign" }],
          conditions: [condition("Initialized", "True"), condition("Ready", "True"), { $patch: "delete", type: "Old" }],
          podIPs: [{ ip: "10.0.0.1" }],
          podIP: "10.0.0.1",
        },
      });
      const found = (at(body, "status", "conditions") as object[]).map(
        (each) => `${at(each, "type")}=${at(each, "status")}`,
      );
      assert.deepEqual(found, ["Initialized=True", "Ready=True", "Foreign=True"]);
      const gone = await cluster.client.patch(path("conditions/status"), { status: { podIP: null, podIPs: null } });
      assert.equal(at(gone.body, "status", "podIP"), undefined);
      assert.equal(at(gone.body, "status", "podIPs"), undefined);
    });

    test("container statuses are replaced whole", async () => {
      await create("statuses");
      const entry = (name: string): object => ({ name, image: "i", imageID: "", ready: true, restartCount: 0 });
      await cluster.client.patch(path("statuses/status"), {
        status: { containerStatuses: [entry("main"), entry("extra")] },
      });
      const { body } = await cluster.client.patch(path("statuses/status"), {
        status: { containerStatuses: [entry("main")] },
      });
      assert.equal((at(body, "status", "containerStatuses") as object[]).length, 1);
    });

    test("deleting a pod on a node waits for the node; the wait can be shortened, never lengthened", async () => {
      await create("graceful");
      const first = await cluster.client.delete(path("graceful"));
      assert.equal(first.code, 200);
      assert.equal(at(first.body, "metadata", "deletionGracePeriodSeconds"), 30);
      assert.equal(at(first.body, "metadata", "generation"), 2);
      const deadline = Date.parse(textAt(first.body, "metadata", "deletionTimestamp"));
      const longer = await cluster.client.delete(path("graceful"), { gracePeriodSeconds: 60 });
      assert.equal(at(longer.body, "metadata", "deletionGracePeriodSeconds"), 30);
      const shorter = await cluster.client.delete(path("graceful"), { gracePeriodSeconds: 5 });
      assert.equal(at(shorter.body, "metadata", "deletionGracePeriodSeconds"), 5);
      assert.equal(Date.parse(textAt(shorter.body, "metadata", "deletionTimestamp")), deadline - 25_000);
      const uid = textAt(first.body, "metadata", "uid");
      const wrong = await cluster.client.delete(path("graceful"), {
        gracePeriodSeconds: 0,
        preconditions: { uid: "x" },
      });
      assert.equal(wrong.code, 409);
      const last = await cluster.client.delete(path("graceful"), { gracePeriodSeconds: 0, preconditions: { uid } });
      assert.equal(last.code, 200);
      assert.equal((await cluster.client.get(path("graceful"))).code, 404);
    });

    test("times of conditions that are not told are null", async () => {
      await create("timeless");
      const conditions = [{ type: "Ready", status: "True" }];
      const { body } = await cluster.client.patch(path("timeless/status"), { status: { conditions } });
      assert.equal(at(body, "status", "conditions", 0, "lastProbeTime"), null);
      assert.equal(at(body, "status", "conditions", 0, "lastTransitionTime"), null);
    });

    test("an address in the status must be one", async () => {
      await create("addressed");
      const { code } = await cluster.client.patch(path("addressed/status"), { status: { podIPs: [{ ip: "x" }] } });
      assert.equal(code, 422);
    });

    test("ephemeral containers are added, not changed", async () => {
      await create("entered");
      const add = (image: string) =>
        cluster.client.patch(path("entered/ephemeralcontainers"), {
          spec: { ephemeralContainers: [{ name: "debug", image }] },
        });
      assert.equal((await add("one:1")).code, 200);
      const { code, body } = await add("other:1");
      assert.equal(code, 422);
      assert.match(String(at(body, "message")), /existing ephemeral containers "debug" may not be changed/);
    });

    test("a deadline only comes nearer", async () => {
      await create("urgent", { activeDeadlineSeconds: 100 });
      const set = async (activeDeadlineSeconds: number) =>
        (await cluster.client.patch(path("urgent"), { spec: { activeDeadlineSeconds } }, "merge")).code;
      assert.equal(await set(50), 200);
      assert.equal(await set(60), 422);
    });

    test("the end of a pod is seen as a change and then as a deletion", async () => {
      const pod = await create("watched");
      const version = textAt(pod, "metadata", "resourceVersion");
      await cluster.client.delete(path("watched"), { gracePeriodSeconds: 0 });
      const seen: unknown[] = [];
      const query = `watch=1&fieldSelector=metadata.name%3Dwatched&resourceVersion=${version}`;
      for await (const { type, object } of cluster.client.watch(`${path()}?${query}`)) {
        seen.push([type, at(object, "metadata", "deletionGracePeriodSeconds"), at(object, "metadata", "generation")]);
        if (type === "DELETED") break;
      }
      assert.deepEqual(seen, [
        ["MODIFIED", 0, 2],
        ["DELETED", 0, 2],
      ]);
    });

    test("a finished pod and one on no node are deleted at once", async () => {
      await create("finished");
      await cluster.client.patch(path("finished/status"), { status: { phase: "Succeeded" } });
      await cluster.client.delete(path("finished"));
      assert.equal((await cluster.client.get(path("finished"))).code, 404);
      const nowhere = boundPod("nowhere", { nodeName: "", schedulerName: "nobody" });
      assert.equal((await cluster.client.post(path(), nowhere)).code, 201);
      await cluster.client.delete(path("nowhere"));
      assert.equal((await cluster.client.get(path("nowhere"))).code, 404);
    });

    test("a finalizer keeps a pod beyond its grace period", async () => {
      const pod = boundPod("finalized");
      await cluster.client.post(path(), { ...pod, metadata: { name: "finalized", finalizers: ["example.com/wait"] } });
      await cluster.client.delete(path("finalized"), { gracePeriodSeconds: 0 });
      const { body } = await cluster.client.get(path("finalized"));
      assert.ok(at(body, "metadata", "deletionTimestamp"));
      await cluster.client.patch(path("finalized"), { metadata: { finalizers: [] } }, "merge");
      assert.equal((await cluster.client.get(path("finalized"))).code, 404);
    });

    test("a binding puts a pod on a node once", async () => {
      await cluster.client.post(path(), boundPod("unbound", { nodeName: "", schedulerName: "nobody" }));
      const binding = { metadata: { name: "unbound" }, target: { kind: "Node", name: "chosen" } };
      const bound = await cluster.client.post(path("unbound/binding"), binding);
      assert.equal(bound.code, 201);
      const { body } = await cluster.client.get(path("unbound"));
      assert.equal(at(body, "spec", "nodeName"), "chosen");
      assert.equal(at(body, "status", "conditions", 0, "type"), "PodScheduled");
      assert.equal(at(body, "status", "conditions", 0, "status"), "True");
      assert.equal((await cluster.client.post(path("unbound/binding"), binding)).code, 409);
    });

    test("an eviction deletes a pod gracefully", async () => {
      await create("evicted");
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "evicted" } };
      const { code } = await cluster.client.post(path("evicted/eviction"), eviction);
      assert.equal(code, 201);
      const { body } = await cluster.client.get(path("evicted"));
      assert.equal(at(body, "metadata", "deletionGracePeriodSeconds"), 30);
    });

    test("a mirror pod is stored as it is, without an account", async () => {
      const mirror = {
        ...boundPod("mirror"),
        metadata: {
          name: "mirror",
          annotations: { "kubernetes.io/config.mirror": "abc", "kubernetes.io/config.hash": "abc" },
        },
      };
      const { code, body } = await cluster.client.post(path(), mirror);
      assert.equal(code, 201, JSON.stringify(body));
      assert.equal(at(body, "spec", "volumes"), undefined);
      assert.equal(at(body, "metadata", "annotations", "kubernetes.io/config.mirror"), "abc");
    });
  });
}
