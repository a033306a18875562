import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { temporaryDirectory } from "../../../../test/support/certificates.ts";
import { generous } from "../../../../test/support/client-lab.ts";
import { type LocalApi, startLocalApi } from "../../../beside/localapi/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../../ground/base/index.ts";
import type { CertificateSigningRequest } from "../../../ground/model/index.ts";
import { loadKubeconfig, parseKubeconfig } from "../access/index.ts";
import { ApiError } from "../api-error.ts";
import type { KubeClient } from "../client.ts";
import { KubeClients } from "../clients.ts";
import { resources } from "../resources.ts";
import { bootstrapClientCertificate, nodeIdentity, requestName } from "./bootstrap-at-once.ts";
import { keptCertificate } from "./facts.ts";
import { CertificateFileStore } from "./file-store.ts";
import { issueCertificate } from "./issue.ts";
import { hasValidCertificate, writeKubeconfig } from "./kubeconfig-file.ts";
import { clientUse } from "./rotation.ts";
import { makeKey, makeSigningRequest } from "./signing-request.ts";
import { chooseBootstrap } from "./tls-bootstrap.ts";

const requests = resources.certificateSigningRequests;
const clock = systemClock;
const log = silentLogger;
const never = new AbortController().signal;

describe("certificates by the API server", { timeout: 60_000 }, () => {
  const scope = new TaskScope();
  let api: LocalApi;
  let admin: KubeClients;
  let newcomer: KubeClients;

  before(async () => {
    const listen = { host: "127.0.0.1", port: 0 };
    api = await startLocalApi({ listen, clock, log, scope, approveKubelets: "off" });
    const open = async (kubeconfig: string): Promise<KubeClients> =>
      new KubeClients(await parseKubeconfig(kubeconfig, "kubeconfig"), generous, { clock, log, environment: {} });
    admin = await open(await api.adminKubeconfig());
    newcomer = await open(api.bootstrapKubeconfig());
  });
  after(async () => {
    newcomer[Symbol.dispose]();
    admin[Symbol.dispose]();
    await api.stop();
    await scope.stop();
  });

  const ports = (client: KubeClient = newcomer.main) => ({ client, clock, log, random: Math.random });
  const { signerName, usages } = clientUse;

  async function order(name?: string) {
    const { request, key } = await makeSigningRequest(nodeIdentity("n"), await makeKey());
    return { key, order: { request, signerName, usages, ...(name === undefined ? {} : { name }) } };
  }

  /** Waits for the one request that nobody has decided yet. */
  async function pending(): Promise<CertificateSigningRequest> {
    for (;;) {
      const { items } = await admin.main.list(requests, {}, {}, never);
      const open = items.find(({ status }) => (status?.conditions ?? []).length === 0);
      if (open !== undefined) return open;
    }
  }

  async function decide({ metadata }: CertificateSigningRequest, type: "Approved" | "Denied"): Promise<void> {
    const conditions = [{ type, status: "True", reason: "ByHand", message: "as you like" }];
    const ref = { name: metadata?.name, subresource: "approval" };
    await admin.main.patch(requests, ref, { type: "merge", body: { status: { conditions } } }, never);
  }

  test("a certificate comes when the request is approved", async () => {
    const { key, order: wanted } = await order();
    const coming = issueCertificate(wanted, 60_000, ports(), never);
    const open = await pending();
    assert.match(open.metadata?.name ?? "", /^csr-/);
    assert.equal(open.spec.expirationSeconds, undefined);
    await decide(open, "Approved");
    const { facts } = keptCertificate(await coming, key);
    assert.equal(facts.commonName, "system:node:n");
    assert.deepEqual(facts.organizations, ["system:nodes"]);
  });

  test("a denial is told with its reason", async () => {
    const coming = issueCertificate((await order()).order, 60_000, ports(), never);
    const failing = assert.rejects(coming, /request is denied, reason: ByHand, message: as you like/);
    await decide(await pending(), "Denied");
    await failing;
  });

  test("a request that is deleted leads to nothing", async () => {
    const coming = issueCertificate((await order()).order, 60_000, ports(), never);
    const failing = assert.rejects(coming, /csr "csr-.*" was deleted/);
    const { metadata } = await pending();
    // Only what was seen can be missed.
    await clock.sleep(300, never);
    await admin.main.delete(requests, { name: metadata?.name }, {}, never);
    await failing;
  });

  test("a request that nobody decides is given up in time, and when asked to", async () => {
    await assert.rejects(issueCertificate((await order()).order, 50, ports(), never), /was not issued within/);
    const stop = new AbortController();
    const stopped = assert.rejects(issueCertificate((await order()).order, 60_000, ports(), stop.signal), /enough/);
    stop.abort(new Error("enough"));
    await stopped;
    const { items } = await admin.main.list(requests, {}, {}, never);
    for (const { metadata } of items) await admin.main.delete(requests, { name: metadata?.name }, {}, never);
  });

  test("a name of its own finds the request of an earlier try, and no other's", async () => {
    const { key, order: wanted } = await order("mine");
    const gaveUp = assert.rejects(issueCertificate(wanted, 50, ports(), never), /not issued/);
    await gaveUp;
    const again = issueCertificate(wanted, 60_000, ports(), never);
    await decide(await pending(), "Approved");
    assert.equal(keptCertificate(await again, key).facts.commonName, "system:node:n");
    const { order: another } = await order("mine");
    await assert.rejects(issueCertificate(another, 60_000, ports(), never), /asks for something else/);
  });

  test("a newcomer gets its certificate and a kubeconfig with it", async () => {
    const directory = temporaryDirectory("bootstrap");
    const certDir = join(directory, "pki");
    const kubeconfig = join(directory, "deep", "kubeconfig");
    const store = new CertificateFileStore({ directory: certDir, prefix: "kubelet-client" }, { clock, log });
    assert.equal(await hasValidCertificate(kubeconfig, { clock, log }), false);

    // The first try is cut off while it waits; the second goes on with its key and its request.
    const stop = new AbortController();
    const first = assert.rejects(
      bootstrapClientCertificate("n", certDir, { ...ports(), store }, stop.signal),
      /enough/,
    );
    const { metadata } = await pending();
    stop.abort(new Error("enough"));
    await first;
    const key = readFileSync(join(certDir, "kubelet-client.key.tmp"), "utf8");
    assert.equal(metadata?.name, requestName(key, nodeIdentity("n"), clientUse));
    assert.match(metadata?.name ?? "", /^node-csr-[\w-]{43}$/);
    const second = bootstrapClientCertificate("n", certDir, { ...ports(), store }, never);
    await decide(await pending(), "Approved");
    await second;
    assert.throws(() => statSync(join(certDir, "kubelet-client.key.tmp")), /ENOENT/);
    assert.equal((await store.read())?.key.trim(), key.trim());

    const access = await parseKubeconfig(api.bootstrapKubeconfig(), "kubeconfig");
    await writeKubeconfig(kubeconfig, access, store.currentPath);
    assert.equal(statSync(kubeconfig).mode & 0o777, 0o600);
    assert.equal(await hasValidCertificate(kubeconfig, { clock, log }), true);
    const settings = { clock, log, environment: {} };
    using node = new KubeClients(await loadKubeconfig(kubeconfig), generous, settings);
    const body = { apiVersion: "v1", kind: "Node", metadata: { name: "n" } };
    assert.equal((await node.main.create(resources.nodes, {}, body, never)).metadata?.name, "n");
    await assert.rejects(node.main.create(resources.nodes, {}, { ...body, metadata: { name: "m" } }, never), /n/);
  });

  test("what is no kubeconfig with a valid certificate", async () => {
    const directory = temporaryDirectory("validity");
    const { writeFileSync } = await import("node:fs");
    const file = join(directory, "kubeconfig");
    const valid = () => hasValidCertificate(file, { clock, log });
    for (const text of ["", "{", api.bootstrapKubeconfig()]) {
      writeFileSync(file, text);
      assert.equal(await valid(), false, text.slice(0, 20));
    }
    const text = await api.nodeKubeconfig("n");
    writeFileSync(file, text);
    assert.equal(await valid(), true);
    const late = { ...clock, now: () => Date.parse("2100-06-01") };
    assert.equal(await hasValidCertificate(file, { clock: late, log }), false);
    await assert.rejects(hasValidCertificate(directory, { clock, log }), /EISDIR/);
  });

  test("the first certificate is waited for unless it is rotated, and asked for only by those without one", async () => {
    const directory = temporaryDirectory("choice");
    const { writeFileSync } = await import("node:fs");
    const known = join(directory, "known");
    writeFileSync(known, await api.nodeKubeconfig("n"));
    const missing = join(directory, "missing");
    for (const [kubeconfig, bootstrapKubeconfig, rotateCertificates, expected] of [
      [missing, "bootstrap", false, "at once"],
      [missing, "bootstrap", true, "in background"],
      [missing, "", false, "none"],
      [missing, "", true, "none"],
      [known, "bootstrap", false, "none"],
      [known, "bootstrap", true, "none"],
    ] as const) {
      const choice = await chooseBootstrap({ kubeconfig, bootstrapKubeconfig, rotateCertificates }, { clock, log });
      assert.equal(choice, expected, JSON.stringify([kubeconfig, bootstrapKubeconfig, rotateCertificates]));
    }
  });

  test("a server that only knows the older version is asked for that", async () => {
    const asked: string[] = [];
    const client = newcomer.main;
    const { key, order: wanted } = await order();
    const picky: Pick<KubeClient, "create" | "get" | "list" | "openWatch"> = {
      async create(resource, ref, body, signal) {
        asked.push(resource.apiVersion);
        if (asked.length === 1) {
          throw new ApiError({ code: 404, reason: "NotFound", message: "no such version", request: "POST" });
        }
        // The one at hand does not know the older version any more, so the newer one stands in for it.
        const newer = requests as unknown as typeof resource;
        return await client.create(newer, ref, { ...body, apiVersion: requests.apiVersion }, signal);
      },
      get: (_resource, ref, options, signal) => client.get(requests as never, ref, options, signal),
      list: (_resource, ref, options, signal) => client.list(requests as never, ref, options, signal),
      openWatch: (_resource, ref, options, signal) => client.openWatch(requests, ref, options, signal),
    };
    const coming = issueCertificate(wanted, 60_000, ports(picky as KubeClient), never);
    await decide(await pending(), "Approved");
    assert.equal(keptCertificate(await coming, key).facts.commonName, "system:node:n");
    assert.deepEqual(asked, ["certificates.k8s.io/v1", "certificates.k8s.io/v1beta1"]);
  });
});
