import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ApiClient, accessOf, at } from "../../../../test/contract/api/client.ts";
import { nodeAccess } from "../../../../test/contract/api/node-access.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { type LocalApi, startLocalApi } from "../start.ts";

type Name = { readonly type: "dns" | "ip" | "email"; readonly value: string };

const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const dns = (value: string): Name => ({ type: "dns", value });
const ip = (value: string): Name => ({ type: "ip", value });

async function requestFor(node: string, names: readonly Name[], more: readonly object[] = []): Promise<string> {
  return await requestOf([{ O: ["system:nodes"] }, { CN: [`system:node:${node}`] }, ...more], names);
}

async function requestOf(subject: readonly object[], names: readonly Name[]): Promise<string> {
  const x509 = await import("@peculiar/x509");
  const signingAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: subject as { [key: string]: string[] }[],
    keys: await crypto.subtle.generateKey(signingAlgorithm, true, ["sign", "verify"]),
    signingAlgorithm,
    extensions: names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension([...names])],
  });
  return Buffer.from(request.toString("pem")).toString("base64");
}

describe("requests for certificates", () => {
  let api: LocalApi;
  let clock: FakeClock;
  let admin: ApiClient;
  let node: ApiClient;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await startLocalApi({ clock });
    admin = new ApiClient(accessOf(await api.adminKubeconfig()));
    node = new ApiClient(accessOf(await api.nodeKubeconfig("n1")));
  });
  afterEach(async () => {
    admin[Symbol.dispose]();
    node[Symbol.dispose]();
    await api.stop();
  });

  const addresses = [
    { type: "InternalIP", address: "10.0.0.5" },
    { type: "InternalIP", address: "2001:DB8::5" },
    { type: "Hostname", address: "n1" },
    // A node tells its addresses itself, so that it may tell these.
    { type: "ExternalIP", address: "127.0.0.1" },
    { type: "InternalDNS", address: "kubernetes.default.svc" },
    { type: "InternalDNS", address: "web.default.svc.cluster.local" },
    { type: "ExternalDNS", address: "localhost" },
    { type: "ExternalDNS", address: "*.example.com" },
    { type: "ExternalIP", address: "10.0.0.6" },
  ];

  async function ask(names: readonly Name[], fields: object = {}): Promise<string> {
    const request = await requestFor("n1", names);
    const { code, body } = await node.post(requests, {
      metadata: { generateName: "csr-" },
      spec: { request, signerName: "kubernetes.io/kubelet-serving", usages: ["server auth"], ...fields },
    });
    assert.equal(code, 201, JSON.stringify(body));
    return String(at(body, "metadata", "name"));
  }

  async function untilSettled(name: string): Promise<unknown> {
    for await (const { object } of admin.watch(`${requests}?watch=1&fieldSelector=metadata.name%3D${name}`)) {
      const conditions = (at(object, "status", "conditions") ?? []) as readonly object[];
      if (at(object, "status", "certificate") !== undefined) return object;
      if (conditions.some((condition) => at(condition, "type") === "Failed")) return object;
    }
    throw new Error("the watch ended");
  }

  test("a node serves under the addresses it tells, and under no name of the API, a service or another node", async () => {
    await node.post("/api/v1/nodes", { metadata: { name: "n1" }, status: { addresses } });
    await admin.post("/api/v1/nodes", {
      metadata: { name: "n2" },
      status: { addresses: [{ type: "InternalIP", address: "10.0.0.6" }] },
    });
    const refused = await Promise.all(
      [
        [dns("kubernetes.default.svc")],
        [dns("localhost")],
        [dns("LOCALHOST.")],
        [ip("127.0.0.1")],
        [ip("::ffff:127.0.0.1")],
        [dns("web.default.svc.cluster.local")],
        [dns("*.example.com")],
        [dns("never.told")],
        [ip("10.0.0.6")],
        [ip("10.0.0.5"), dns("kubernetes")],
        [dns("10.0.0.5")],
        [{ type: "email" as const, value: "n1" }],
      ].map((names) => ask(names)),
    );
    const good = await ask([ip("10.0.0.5"), ip("2001:db8::5"), dns("n1")]);
    const signed = at(await untilSettled(good), "status", "certificate");
    const { subjectAltName } = new X509Certificate(Buffer.from(String(signed), "base64"));
    assert.match(subjectAltName ?? "", /IP Address:10\.0\.0\.5.*DNS:n1/);
    // What was asked for earlier has been looked at by now.
    for (const name of refused) {
      const { body } = await admin.get(`${requests}/${name}`);
      assert.equal(at(body, "status", "conditions"), undefined, JSON.stringify(at(body, "spec")));
    }
  });

  test("a request that comes before the node's addresses is answered with them", async () => {
    await node.post("/api/v1/nodes", { metadata: { name: "n1" } });
    const name = await ask([dns("n1")]);
    await node.patch("/api/v1/nodes/n1/status", { status: { addresses } });
    assert.ok(at(await untilSettled(name), "status", "certificate"));
  });

  test("a certificate lives for a year at most, and a subject of two names is refused", async () => {
    await node.post("/api/v1/nodes", { metadata: { name: "n1" }, status: { addresses } });
    const name = await ask([dns("n1")], { expirationSeconds: 2_000_000_000 });
    const signed = new X509Certificate(
      Buffer.from(String(at(await untilSettled(name), "status", "certificate")), "base64"),
    );
    assert.equal(Date.parse(signed.validTo) - clock.now(), 365 * 24 * 3600 * 1000);
    const twice = await admin.post(requests, {
      metadata: { name: "twice" },
      spec: {
        request: await requestFor("n1", [], [{ CN: ["system:node:n2"] }]),
        signerName: "kubernetes.io/kube-apiserver-client-kubelet",
        usages: ["client auth"],
      },
    });
    assert.equal(twice.code, 201);
    const approval = { status: { conditions: [{ type: "Approved", status: "True", reason: "ByHand" }] } };
    await admin.patch(`${requests}/twice/approval`, approval);
    assert.equal(at(await untilSettled("twice"), "status", "certificate"), undefined);
  });

  const nodeSubject = [{ O: ["system:nodes"] }, { CN: ["system:node:n1"] }];
  for (const [what, signer, subject, names, why] of [
    [
      "an administrator by the signer of nodes",
      "-kubelet",
      [{ O: ["system:masters"] }, { CN: ["x"] }],
      [],
      /not system:nodes/,
    ],
    [
      "another user by the signer of nodes",
      "-kubelet",
      [{ O: ["system:nodes"] }, { CN: ["admin"] }],
      [],
      /not system:nodes/,
    ],
    ["a node with names to serve under", "-kubelet", nodeSubject, [dns("n1")], /subjectAltNames are not allowed/],
    ["an administrator", "", [{ O: ["system:masters"] }, { CN: ["x"] }], [], /system:masters group is not allowed/],
  ] as const) {
    test(`whoever approves it, nobody becomes ${what}`, async () => {
      const { code } = await admin.post(requests, {
        metadata: { name: "odd" },
        spec: {
          request: await requestOf(subject, names),
          signerName: `kubernetes.io/kube-apiserver-client${signer}`,
          usages: ["client auth"],
        },
      });
      assert.equal(code, 201);
      const approval = { status: { conditions: [{ type: "Approved", status: "True", reason: "ByHand" }] } };
      await admin.patch(`${requests}/odd/approval`, approval);
      const settled = await untilSettled("odd");
      assert.equal(at(settled, "status", "certificate"), undefined);
      assert.match(JSON.stringify(at(settled, "status", "conditions")), why);
    });
  }

  test("a request of thousands of names is refused before anybody reads it", async () => {
    const request = Buffer.from(`-----BEGIN CERTIFICATE REQUEST-----\n${"A".repeat(60_000)}`).toString("base64");
    const spec = { request, signerName: "kubernetes.io/kubelet-serving", usages: ["server auth"] };
    const { code, body } = await node.post(requests, { metadata: { name: "long" }, spec });
    assert.equal(code, 422);
    assert.match(JSON.stringify(body), /spec\.request.*may not be longer than 65536 bytes/);
  });
});

test("a certificate that has ended is worth nothing on a connection that has not", async () => {
  // TLS goes by the real time, the server by its own clock.
  const clock = new FakeClock(Date.now());
  await using api = await startLocalApi({ clock });
  using admin = new ApiClient(accessOf(await api.adminKubeconfig()));
  using node = new ApiClient(await nodeAccess(accessOf(await api.adminKubeconfig()), "n1", { expirationSeconds: 600 }));
  const own = "/api/v1/nodes/n1";
  assert.equal((await node.get(own)).code, 404);
  await clock.advance(601_000);
  assert.equal((await node.get(own)).code, 401);
  assert.equal((await admin.get(own)).code, 404);
});
