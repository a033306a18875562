import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { resources } from "../../src/connections/kube/index.ts";
import type { CertificateSigningRequest } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { untilTold } from "../support/raw-runtime.ts";
import { soon } from "../support/until.ts";

describe("certificates signed by the API server", { timeout: 240_000 }, () => {
  let containerd: TestContainerd;
  before(async () => {
    containerd = await startContainerd();
  });
  after(async () => {
    await containerd?.[Symbol.asyncDispose]();
  });

  async function requestsOf(cluster: ApiCluster): Promise<readonly CertificateSigningRequest[]> {
    const list = cluster.admin.list(resources.certificateSigningRequests, {}, {}, soon());
    return (await list).items;
  }

  async function runsPods(cluster: ApiCluster, name: string): Promise<void> {
    const containers = [{ name: "main", image: containerd.images.busybox, command: [...untilTold] }];
    await cluster.create(name, { containers });
    await cluster.until(name, "Running and ready", isReady);
    await cluster.delete(name);
    await cluster.untilGone(name);
  }

  /** What the node API shows to somebody who trusts the cluster's authority alone. */
  async function shownBy(port: number, caPem: string): Promise<X509Certificate | undefined> {
    return await new Promise((resolve) => {
      const socket: TLSSocket = connect({ host: "127.0.0.1", port, servername: "test-node", ca: caPem }, () => {
        resolve(socket.getPeerX509Certificate());
        socket.destroy();
      });
      socket.once("error", () => resolve(undefined));
    });
  }

  test("a node joins with nothing but a token, serves with a certificate, and goes on after a restart", async () => {
    const port = await freePort();
    const config = { rotateCertificates: true, serverTLSBootstrap: true, port };
    await using cluster = await ApiCluster.start(containerd, config, "newcomer");
    const { agent, api } = cluster;
    await runsPods(cluster, "first");
    const pki = join(agent.rootDir, "pki");
    const target = readlinkSync(join(pki, "kubelet-client-current.pem"));
    assert.match(target, /\/pki\/kubelet-client-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.pem$/);
    assert.match(new X509Certificate(readFileSync(target)).subject, /O=system:nodes\nCN=system:node:test-node/);
    const kubeconfig = readFileSync(join(containerd.stateDir, "node.kubeconfig"), "utf8");
    assert.match(kubeconfig, new RegExp(`client-certificate: ${join(pki, "kubelet-client-current.pem")}`));

    const served = await eventually(() => shownBy(port, api.caPem), "the node API shows its certificate", 30_000);
    assert.match(served.subject, /CN=system:node:test-node/);
    assert.match(served.subjectAltName ?? "", /DNS:test-node, IP Address:\d+/);
    assert.ok(existsSync(join(pki, "kubelet-server-current.pem")));

    const before = await requestsOf(cluster);
    const bySigner = before.map(({ spec }) => [spec.signerName, spec.username]).toSorted();
    assert.deepEqual(bySigner, [
      ["kubernetes.io/kube-apiserver-client-kubelet", "system:bootstrap:nodelet"],
      ["kubernetes.io/kubelet-serving", "system:node:test-node"],
    ]);
    assert.equal(await agent.stop(), 0);
    await agent.launch();
    await runsPods(cluster, "second");
    const again = await eventually(() => shownBy(port, api.caPem), "the node API shows it again", 30_000);
    assert.equal(again.fingerprint256, served.fingerprint256);
    assert.equal((await requestsOf(cluster)).length, before.length, "no certificate was asked for again");
    rmSync(pki, { recursive: true });
  });

  test("without rotation the agent waits for its certificate, then works with it", async () => {
    await using cluster = await ApiCluster.start(containerd, {}, "newcomer");
    await runsPods(cluster, "patient");
    const pki = join(cluster.agent.rootDir, "pki");
    const [request] = await requestsOf(cluster);
    assert.match(request?.metadata?.name ?? "", /^node-csr-[\w-]{43}$/);
    assert.ok(!readdirSync(pki).includes("kubelet-client.key.tmp"));
    rmSync(pki, { recursive: true });
  });

  test("a certificate that came with the kubeconfig is replaced by one of the node's own", async () => {
    await using cluster = await ApiCluster.start(containerd, { rotateCertificates: true });
    const pki = join(cluster.agent.rootDir, "pki");
    await eventually(
      async () => readdirSync(pki).filter((name) => /^kubelet-client-\d/.test(name)).length > 0,
      "the kubeconfig's certificate is kept",
      30_000,
    );
    const [request] = await eventually(
      async () => {
        const found = await requestsOf(cluster);
        return found.some(({ status }) => status?.certificate !== undefined) ? found : undefined;
      },
      "a new certificate",
      30_000,
    );
    assert.equal(request?.spec.username, "system:node:test-node");
    const issued = Buffer.from(request?.status?.certificate ?? "", "base64")
      .toString()
      .trim();
    await eventually(
      async () => readFileSync(join(pki, "kubelet-client-current.pem"), "utf8").startsWith(issued),
      "the new certificate is in use",
      30_000,
    );
    await runsPods(cluster, "renewed");
    rmSync(pki, { recursive: true });
  });
});
