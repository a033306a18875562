import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { afterEach, beforeEach, describe, test } from "node:test";
import { type ApiAccess, ApiClient, accessOf, at, textAt } from "../../../test/contract/api/client.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { type LocalApi, type LocalApiOptions, startLocalApi } from "./start.ts";

const pods = "/api/v1/namespaces/default/pods";
const container = { name: "main", image: "registry.invalid/none:1" };
const readyNode = (name: string, labels: object = {}): object => ({
  metadata: { name, labels },
  status: { conditions: [{ type: "Ready", status: "True" }] },
});

describe("local API server", () => {
  let clock: FakeClock;
  let scope: TaskScope;
  let api: LocalApi;
  let client: ApiClient;

  async function start(options: Partial<LocalApiOptions> = {}): Promise<void> {
    clock = new FakeClock();
    scope = new TaskScope();
    const listen = { host: "127.0.0.1", port: 0 };
    api = await startLocalApi({ listen, clock, log: silentLogger, scope, ...options });
    client = new ApiClient(accessOf(await api.adminKubeconfig()));
  }

  beforeEach(async () => await start());
  afterEach(async () => {
    client[Symbol.dispose]();
    await api.stop();
    await scope.stop();
    assert.equal(clock.pendingTimers, 0);
  });

  test("a claim and the volume that it names are bound to each other, whichever comes first; the volume outlives it", async () => {
    const [claims, volumes] = ["/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"];
    const capacity = { storage: "1Gi" };
    const common = { accessModes: ["ReadWriteOnce"], storageClassName: "" };
    const volume = (name: string, more: object = {}) =>
      client.post(volumes, { metadata: { name }, spec: { ...common, capacity, hostPath: { path: "/tmp" }, ...more } });
    const claim = (name: string, more: object = {}) =>
      client.post(claims, { metadata: { name }, spec: { ...common, resources: { requests: capacity }, ...more } });
    await claim("first", { volumeName: "a" });
    await volume("a");
    await volume("b", { claimRef: { namespace: "default", name: "second" } });
    await claim("second");
    await claim("late", { volumeName: "a" });
    const phases = async (path: string) => {
      const { body } = await client.get(path);
      const items = at(body, "items") as readonly object[];
      return items.map((item) => [textAt(item, "metadata", "name"), textAt(item, "status", "phase")]);
    };
    assert.deepEqual(await phases(claims), [
      ["first", "Bound"],
      ["late", "Pending"],
      ["second", "Bound"],
    ]);
    const { body: first } = await client.get(`${claims}/first`);
    const { body: bound } = await client.get(`${volumes}/a`);
    assert.equal(textAt(bound, "spec", "claimRef", "uid"), textAt(first, "metadata", "uid"));
    await client.delete(`${claims}/first`);
    assert.deepEqual(await phases(volumes), [
      ["a", "Released"],
      ["b", "Bound"],
    ]);
  });

  test("speaks HTTP/2 to who can", async () => {
    const { certPem, keyPem } = accessOf(await api.adminKubeconfig());
    const session = connect(api.url, { ca: api.caPem, cert: certPem, key: keyPem });
    const stream = session.request({ [constants.HTTP2_HEADER_PATH]: "/api/v1/namespaces/default" });
    const [headers] = await once(stream, "response");
    assert.equal(headers[":status"], 200);
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) text += chunk;
    assert.equal(at(JSON.parse(text), "metadata", "name"), "default");
    session.destroy();
  });

  test("a connection has so many streams; who wants more opens another", async () => {
    const { certPem, keyPem } = accessOf(await api.adminKubeconfig());
    const session = connect(api.url, { ca: api.caPem, cert: certPem, key: keyPem });
    const [settings] = await once(session, "remoteSettings");
    assert.equal(settings.maxConcurrentStreams, 250);
    session.destroy();
  });

  test("a token for very many audiences is reviewed without a standstill", async () => {
    const audiences = Array.from({ length: 60_000 }, (_, index) => `a${index}`);
    const account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    const { body } = await client.post(account, { spec: { audiences } });
    const token = textAt(body, "status", "token");
    const others = audiences.map((name) => `not-${name}`);
    const cpu = process.cpuUsage();
    const { body: reviewed } = await client.post("/apis/authentication.k8s.io/v1/tokenreviews", {
      spec: { token, audiences: [...others, "a59999"] },
    });
    // All against all would take a hundred times as long as reading and writing them.
    assert.ok(process.cpuUsage(cpu).user < 3_000_000);
    assert.deepEqual(at(reviewed, "status", "audiences"), ["a59999"]);
  });

  test("watches are let go when a client resets so many that its connection is cut", async () => {
    const { certPem, keyPem } = accessOf(await api.adminKubeconfig());
    const session = connect(api.url, { ca: api.caPem, cert: certPem, key: keyPem });
    session.on("error", () => {});
    const path = "/api/v1/namespaces/default/configmaps?watch=1";
    for (let opened = 0; opened < 3_000 && !session.destroyed; opened++) {
      const stream = session.request({ [constants.HTTP2_HEADER_PATH]: path });
      stream.on("error", () => {}).resume();
      setTimeout(() => stream.destroy(), opened % 30);
      if (opened % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.ok(session.destroyed, "the server endures any number of resets");
    while (api.watcherCount > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test("a quiet watch is told how far things are, once a minute", async () => {
    const events = client.watch(`${pods}?watch=1&allowWatchBookmarks=true&resourceVersion=1`);
    const next = events.next();
    while (clock.pendingTimers < 3) await new Promise((resolve) => setImmediate(resolve));
    await client.post("/api/v1/namespaces/default/configmaps", { metadata: { name: "elsewhere" } });
    await clock.advance(60_000);
    const { value } = await next;
    assert.equal(value?.type, "BOOKMARK");
    assert.equal(at(value?.object, "kind"), "Pod");
    const { body } = await client.get(pods);
    assert.equal(at(value?.object, "metadata", "resourceVersion"), at(body, "metadata", "resourceVersion"));
    await events.return(undefined);
    while (clock.pendingTimers > 1) await new Promise((resolve) => setImmediate(resolve));
  });

  test("pods wait for a node that fits and go to the one with the fewest", async () => {
    const create = async (name: string, spec: object = {}): Promise<void> => {
      const { code, body } = await client.post(pods, {
        metadata: { name },
        spec: { containers: [container], ...spec },
      });
      assert.equal(code, 201, JSON.stringify(body));
    };
    const nodeOf = async (name: string): Promise<unknown> =>
      at((await client.get(`${pods}/${name}`)).body, "spec", "nodeName");
    await create("early");
    const waiting = await client.get(`${pods}/early`);
    assert.equal(at(waiting.body, "status", "conditions", 0, "reason"), "Unschedulable");
    assert.equal(at(waiting.body, "status", "conditions", 0, "message"), "no nodes available to schedule pods");
    await client.post("/api/v1/nodes", readyNode("n1"));
    assert.equal(await nodeOf("early"), "n1");
    await client.post("/api/v1/nodes", readyNode("n2", { disk: "ssd" }));
    await create("second");
    assert.equal(await nodeOf("second"), "n2");
    await create("picky", { nodeSelector: { disk: "nvme" } });
    const picky = await client.get(`${pods}/picky`);
    const message = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.";
    assert.equal(at(picky.body, "status", "conditions", 0, "message"), message);
    await client.patch("/api/v1/nodes/n1", { metadata: { labels: { disk: "nvme" } } });
    assert.equal(await nodeOf("picky"), "n1");
    const { body } = await client.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dpicky");
    assert.deepEqual((at(body, "items") as object[]).map((event) => at(event, "reason")).toSorted(), [
      "FailedScheduling",
      "Scheduled",
    ]);
  });

  test("what belongs to a node goes with it, unless it is orphaned", async () => {
    const { body } = await client.post("/api/v1/nodes", readyNode("n1"));
    const owner = { apiVersion: "v1", kind: "Node", name: "n1", uid: textAt(body, "metadata", "uid") };
    const maps = "/api/v1/namespaces/default/configmaps";
    await client.post(maps, { metadata: { name: "owned", ownerReferences: [owner] } });
    const stale = await client.post(maps, {
      metadata: { name: "stale", ownerReferences: [{ ...owner, uid: "gone" }] },
    });
    assert.equal(stale.code, 201);
    assert.equal((await client.get(`${maps}/stale`)).code, 404);
    await client.delete("/api/v1/nodes/n1");
    assert.equal((await client.get(`${maps}/owned`)).code, 404);
    const again = await client.post("/api/v1/nodes", readyNode("n1"));
    const newOwner = { ...owner, uid: textAt(again.body, "metadata", "uid") };
    await client.post(maps, { metadata: { name: "kept", ownerReferences: [newOwner] } });
    await client.delete("/api/v1/nodes/n1", { propagationPolicy: "Orphan" });
    assert.equal(at((await client.get(`${maps}/kept`)).body, "metadata", "ownerReferences"), undefined);
  });

  test("events go an hour after they were last written", async () => {
    const events = "/api/v1/namespaces/default/events";
    const event = (name: string): object => ({
      metadata: { name },
      involvedObject: { kind: "Pod", name: "x", namespace: "default" },
      lastTimestamp: new Date(clock.now()).toISOString(),
    });
    await client.post(events, event("old"));
    await clock.advance(50 * 60_000);
    await client.post(events, event("young"));
    await clock.advance(11 * 60_000);
    const { body } = await client.get(events);
    assert.deepEqual(
      (at(body, "items") as object[]).map((item) => at(item, "metadata", "name")),
      ["young"],
    );
  });

  test("a service gets an address of its own", async () => {
    const services = "/api/v1/namespaces/default/services";
    const { body } = await client.post(services, { metadata: { name: "web" }, spec: { ports: [{ port: 80 }] } });
    assert.equal(at(body, "spec", "clusterIP"), "10.96.0.2");
    assert.equal(at(body, "spec", "type"), "ClusterIP");
    assert.deepEqual(at(body, "spec", "ports"), [{ port: 80, protocol: "TCP", targetPort: 80 }]);
    const headless = await client.post(services, { metadata: { name: "none" }, spec: { clusterIP: "None" } });
    assert.equal(at(headless.body, "spec", "clusterIP"), "None");
    const own = await client.get(`${services}/kubernetes`);
    assert.equal(at(own.body, "spec", "clusterIP"), "127.0.0.1");
    assert.equal(`https://127.0.0.1:${at(own.body, "spec", "ports", 0, "port")}`, api.url);
  });

  test("a secret may be written in plain text and is read in base64", async () => {
    const secrets = "/api/v1/namespaces/default/secrets";
    const { body } = await client.post(secrets, {
      metadata: { name: "s" },
      stringData: { a: "text" },
      data: { b: "Yg==" },
    });
    assert.deepEqual(at(body, "data"), { a: "dGV4dA==", b: "Yg==" });
    assert.equal(at(body, "stringData"), undefined);
    assert.equal(at(body, "type"), "Opaque");
  });

  test("nothing is created in a namespace on its way out, which goes when its last pod has gone", async () => {
    await client.post("/api/v1/namespaces", { metadata: { name: "leaving" } });
    const path = "/api/v1/namespaces/leaving/pods";
    await client.post(path, { metadata: { name: "last" }, spec: { nodeName: "n", containers: [container] } });
    const deleted = await client.delete("/api/v1/namespaces/leaving");
    assert.equal(at(deleted.body, "status", "phase"), "Terminating");
    const late = await client.post(path, { metadata: { name: "late" }, spec: { containers: [container] } });
    assert.equal(late.code, 403);
    assert.match(textAt(late.body, "message"), /because it is being terminated/);
    const last = await client.get(`${path}/last`);
    assert.equal(at(last.body, "metadata", "deletionGracePeriodSeconds"), 30);
    await client.delete(`${path}/last`, { gracePeriodSeconds: 0 });
    assert.equal((await client.get("/api/v1/namespaces/leaving")).code, 404);
  });

  test("a pod of a class gets its priority and its overhead; unknown classes are refused", async () => {
    await client.post("/apis/scheduling.k8s.io/v1/priorityclasses", { metadata: { name: "high" }, value: 1000 });
    const overhead = { podFixed: { memory: "10Mi" } };
    await client.post("/apis/node.k8s.io/v1/runtimeclasses", { metadata: { name: "vm" }, handler: "vm", overhead });
    const create = (name: string, spec: object): Promise<{ code: number; body: unknown }> =>
      client.post(pods, { metadata: { name }, spec: { containers: [container], ...spec } });
    const { body } = await create("classy", { priorityClassName: "high", runtimeClassName: "vm" });
    assert.equal(at(body, "spec", "priority"), 1000);
    assert.deepEqual(at(body, "spec", "overhead"), { memory: "10Mi" });
    assert.equal(
      at((await create("critical", { priorityClassName: "system-node-critical" })).body, "spec", "priority"),
      2_000_001_000,
    );
    assert.match(
      textAt((await create("a", { priorityClassName: "no" })).body, "message"),
      /no PriorityClass with name no was found/,
    );
    assert.match(
      textAt((await create("b", { runtimeClassName: "no" })).body, "message"),
      /RuntimeClass "no" not found/,
    );
  });

  test("a newcomer asks for a certificate and becomes a node with it", async () => {
    const x509 = await import("@peculiar/x509");
    const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const name = [{ O: ["system:nodes"] }, { CN: ["system:node:fresh"] }];
    const request = await x509.Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm: algorithm });
    using newcomer = new ApiClient(accessOf(api.bootstrapKubeconfig()));
    const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const created = await newcomer.post(path, {
      metadata: { generateName: "csr-" },
      spec: {
        request: Buffer.from(request.toString("pem")).toString("base64"),
        signerName: "kubernetes.io/kube-apiserver-client-kubelet",
        usages: ["digital signature", "client auth"],
        username: "somebody else",
      },
    });
    assert.equal(created.code, 201, JSON.stringify(created.body));
    assert.equal(at(created.body, "spec", "username"), "system:bootstrap:nodelet");
    const watch = `${path}?watch=1&fieldSelector=metadata.name%3D${textAt(created.body, "metadata", "name")}`;
    let certificate = "";
    for await (const { object } of newcomer.watch(watch)) {
      certificate = String(at(object, "status", "certificate") ?? "");
      if (certificate !== "") break;
    }
    const issued = new X509Certificate(Buffer.from(certificate, "base64"));
    assert.match(issued.subject, /CN=system:node:fresh/);
    assert.equal(Date.parse(issued.validTo) - clock.now(), 365 * 24 * 3600 * 1000);
    assert.ok(issued.verify(new X509Certificate(api.caPem).publicKey));
    assert.equal((await newcomer.get(pods)).code, 403);
  });

  test("requests that nobody may approve by themselves wait for a person", async () => {
    const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const request = Buffer.from("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n").toString(
      "base64",
    );
    const spec = { request, signerName: "kubernetes.io/kube-apiserver-client", usages: ["client auth"] };
    await client.post(path, { metadata: { name: "odd" }, spec });
    const approval = { status: { conditions: [{ type: "Approved", status: "True", reason: "ByHand" }] } };
    await client.patch(`${path}/odd/approval`, approval);
    for await (const { object } of client.watch(`${path}?watch=1&fieldSelector=metadata.name%3Dodd`)) {
      const conditions = (at(object, "status", "conditions") ?? []) as object[];
      if (conditions.some((condition) => at(condition, "type") === "Failed")) break;
    }
    const changed = await client.patch(`${path}/odd`, { spec: { signerName: "example.com/other" } });
    assert.equal(at(changed.body, "spec", "signerName"), "kubernetes.io/kube-apiserver-client");
  });

  test("others may do what they are granted, and nothing else", async () => {
    await api.stop();
    await scope.stop();
    client[Symbol.dispose]();
    await start({ grants: [{ to: "system:serviceaccounts:default", verbs: ["get", "list"], resources: ["pods"] }] });
    const { body } = await client.post("/api/v1/namespaces/default/serviceaccounts/default/token", { spec: {} });
    using account = new ApiClient({ server: api.url, caPem: api.caPem, token: textAt(body, "status", "token") });
    assert.equal((await account.get(pods)).code, 200);
    assert.equal((await account.delete(`${pods}/x`)).code, 403);
    assert.equal((await account.get("/api/v1/nodes")).code, 403);
    await clock.advance(3600_000);
    assert.equal((await account.get(pods)).code, 401);
  });

  test("a token ends with the pod it is bound to", async () => {
    const { body: pod } = await client.post(pods, {
      metadata: { name: "bound" },
      spec: { nodeName: "n", containers: [container] },
    });
    const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "bound", uid: at(pod, "metadata", "uid") };
    const requests = "/api/v1/namespaces/default/serviceaccounts/default/token";
    for (const kind of ["constructor", "__proto__", "Gadget"]) {
      const { code, body: refusal } = await client.post(requests, { spec: { boundObjectRef: { kind, name: "x" } } });
      assert.equal(code, 400, kind);
      assert.equal(at(refusal, "message"), `cannot bind token to object of type ${kind}`);
    }
    const { body } = await client.post(requests, { spec: { boundObjectRef } });
    const isGood = async (): Promise<unknown> => {
      const spec = { token: textAt(body, "status", "token") };
      return at(
        (await client.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec })).body,
        "status",
        "authenticated",
      );
    };
    assert.equal(await isGood(), true);
    await client.delete(`${pods}/bound`, { gracePeriodSeconds: 0 });
    assert.notEqual(await isGood(), true);
  });

  test("a watch whose connection is cut can be resumed without a gap", async () => {
    const { body } = await client.get(pods);
    const version = textAt(body, "metadata", "resourceVersion");
    const events = client.watch(`${pods}?watch=1&resourceVersion=${version}`);
    await client.post(pods, { metadata: { name: "seen" }, spec: { nodeName: "n", containers: [container] } });
    const first = await events.next();
    api.dropConnections();
    await assert.rejects(async () => await events.next());
    await client.post(pods, { metadata: { name: "missed" }, spec: { nodeName: "n", containers: [container] } });
    const last = textAt(first.value?.object, "metadata", "resourceVersion");
    for await (const { object } of client.watch(`${pods}?watch=1&resourceVersion=${last}`)) {
      assert.equal(at(object, "metadata", "name"), "missed");
      break;
    }
  });

  test("who stores what nothing comes of is told so, and nobody else is", async () => {
    const template = { metadata: { labels: { a: "b" } }, spec: { containers: [container] } };
    const spec = { selector: { matchLabels: { a: "b" } }, template };
    for (const [path, kind] of [
      ["/apis/apps/v1/namespaces/default/deployments", "Deployment"],
      ["/apis/apps/v1/namespaces/default/replicasets", "ReplicaSet"],
      ["/apis/apps/v1/namespaces/default/statefulsets", "StatefulSet"],
      ["/apis/apps/v1/namespaces/default/daemonsets", "DaemonSet"],
      ["/apis/batch/v1/namespaces/default/jobs", "Job"],
      ["/apis/batch/v1/namespaces/default/cronjobs", "CronJob"],
      ["/api/v1/namespaces/default/services", "Service"],
      ["/api/v1/namespaces/default/persistentvolumeclaims", "PersistentVolumeClaim"],
      ["/apis/policy/v1/namespaces/default/poddisruptionbudgets", "PodDisruptionBudget"],
    ] as const) {
      const body = { metadata: { name: "x" }, spec: kind === "Service" ? { ports: [{ port: 80 }] } : spec };
      const created = await client.post(`${path}?fieldValidation=Ignore`, body);
      assert.equal(created.code, 201, JSON.stringify(created.body));
      assert.match(
        String(created.headers["warning"]),
        new RegExp(`^299 - "this ${kind} is stored, but nothing comes of`),
      );
      const patched = await client.patch(`${path}/x`, { metadata: { labels: { c: "d" } } }, "merge");
      assert.match(String(patched.headers["warning"]), /nothing comes of it here/);
      assert.equal((await client.get(`${path}/x`)).headers["warning"], undefined);
    }
    const pod = await client.post(pods, { metadata: { name: "plain" }, spec: { containers: [container] } });
    assert.equal(pod.headers["warning"], undefined);
  });

  test("a field that would reach beyond the object is refused", async () => {
    const body = JSON.parse('{"metadata":{"name":"x","labels":{"__proto__":"y"}}}');
    assert.equal((await client.post("/api/v1/namespaces/default/configmaps", body)).code, 400);
  });
});

test("it needs no options, and is gone with the block that holds it", async () => {
  let access: ApiAccess;
  {
    await using own = await startLocalApi();
    access = accessOf(await own.adminKubeconfig());
    using reader = new ApiClient(access);
    assert.equal((await reader.get("/api/v1/namespaces/default")).code, 200);
  }
  using late = new ApiClient(access);
  await assert.rejects(late.get("/readyz"), { code: "ECONNREFUSED" });
});
