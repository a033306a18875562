import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer, type RequestOptions, request } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { type ApiAccess, ApiClient, accessOf, textAt } from "../../../../test/contract/api/client.ts";
import { systemClock } from "../../../ground/base/index.ts";
import { CertificateAuthority } from "../auth/certificates.ts";
import { isProxyable } from "../hosts.ts";
import { type LocalApi, startLocalApi } from "../start.ts";

const pods = "/api/v1/namespaces/default/pods";
const machineAddress = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ address, family }) => family === "IPv4" && isProxyable(address))?.address;

for (const [address, isAllowed] of [
  ["10.1.2.3", true],
  ["2001:db8::1", true],
  ["127.0.0.1", false],
  ["::1", false],
  ["::ffff:127.0.0.1", false],
  ["169.254.169.254", false],
  ["fe80::1", false],
  ["0.0.0.0", false],
  ["::", false],
  ["255.255.255.255", false],
  ["224.0.0.1", false],
  ["ff02::1", false],
  ["not an address", false],
] as const) {
  test(`${address} may ${isAllowed ? "" : "not "}be called for a client`, () =>
    assert.equal(isProxyable(address), isAllowed));
}

describe("proxies to pods and nodes", () => {
  let api: LocalApi;
  let client: ApiClient;
  let access: ApiAccess;

  beforeEach(async () => {
    api = await startLocalApi({ binder: "off" });
    access = accessOf(await api.adminKubeconfig());
    client = new ApiClient(access);
  });
  afterEach(async () => {
    client[Symbol.dispose]();
    await api.stop();
  });

  async function podAt(name: string, podIP: string, containerPort: number): Promise<void> {
    const containers = [{ name: "main", image: "registry.invalid/none:1", ports: [{ containerPort }] }];
    await client.post(pods, { metadata: { name }, spec: { nodeName: "n1", containers } });
    const { code } = await client.patch(`${pods}/${name}/status`, { status: { podIP, podIPs: [{ ip: podIP }] } });
    assert.equal(code, 200);
  }

  /** A request of which the test holds every end. */
  function send(path: string, options: RequestOptions) {
    const { certPem: cert, keyPem: key, caPem: ca, server } = access;
    const call = request(`${server}${path}`, { ...options, cert, key, ca, agent: false });
    call.on("error", () => {});
    return call;
  }

  async function listening(server: Server | ReturnType<typeof createTcpServer>, host: string): Promise<number> {
    server.listen(0, host);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  test("what a pod calls its address is not believed when it is this machine's loopback or a link's", async () => {
    const secrets = createServer((_, response) => response.end("secret"));
    const port = await listening(secrets, "127.0.0.1");
    for (const [index, address] of ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "::1"].entries()) {
      await podAt(`p${index}`, address, port);
      const { code, body } = await client.get(`${pods}/p${index}/proxy/`);
      assert.equal(code, 400, address);
      assert.equal(textAt(body, "message"), "address not allowed");
    }
    for (const [name, address] of [
      ["n1", "127.0.0.1"],
      ["n2", "localhost"],
    ] as const) {
      await client.post("/api/v1/nodes", {
        metadata: { name },
        status: { addresses: [{ type: "InternalIP", address }] },
      });
      const { body } = await client.get(`/api/v1/nodes/${name}:${port}/proxy/`);
      assert.match(textAt(body, "message"), /address not allowed/, address);
    }
    secrets.close();
  });

  test("the certificate of a master is shown to the kubelet's port and no other", {
    skip: !machineAddress,
  }, async () => {
    const authority = await CertificateAuthority.create("stranger");
    const { certPem, keyPem } = await authority.issueServer({ commonName: "stranger" }, ["x"]);
    const asked: string[] = [];
    const options = { cert: certPem, key: keyPem, requestCert: true, rejectUnauthorized: false };
    const start = async (name: string) => {
      const server = createTlsServer(options, (incoming, response) => {
        const { subject } = (incoming.socket as TLSSocket).getPeerCertificate();
        asked.push(`${name} ${subject?.CN ?? "nobody"}`);
        response.end("ok");
      });
      return { server, port: await listening(server, machineAddress ?? "") };
    };
    const [kubelet, stranger] = [await start("kubelet"), await start("stranger")];
    await client.post("/api/v1/nodes", {
      metadata: { name: "n1" },
      status: {
        addresses: [{ type: "InternalIP", address: machineAddress }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
      },
    });
    for (const id of ["n1", `n1:${kubelet.port}`, `https:n1:${kubelet.port}`, `https:n1:${stranger.port}`]) {
      assert.equal((await client.get(`/api/v1/nodes/${id}/proxy/pods`)).code, 200, id);
    }
    const master = "kube-apiserver-kubelet-client";
    assert.deepEqual(asked, [`kubelet ${master}`, `kubelet ${master}`, `kubelet ${master}`, "stranger nobody"]);
    for (const id of ["n1:0", "n1:70000", "n1:x", "ftp:n1:80", "a:b:c:d"]) {
      assert.equal((await client.get(`/api/v1/nodes/${id}/proxy/pods`)).code, 400, id);
    }
    kubelet.server.close();
    stranger.server.close();
  });

  test("a client that leaves takes its request to the pod along", { skip: !machineAddress }, async () => {
    const open = new Set<object>();
    const silent = createTcpServer((socket) => {
      open.add(socket);
      socket.on("error", () => {}).once("close", () => open.delete(socket));
      socket.resume();
    });
    const port = await listening(silent, machineAddress ?? "");
    await podAt("silent", machineAddress ?? "", port);
    for (const method of ["GET", "POST"]) {
      const call = send(`${pods}/silent/proxy/`, { method });
      if (method === "GET") call.end();
      else call.write("the beginning of");
      while (open.size === 0) await systemClock.sleep(5, AbortSignal.timeout(20_000));
      call.destroy();
      while (open.size > 0) await systemClock.sleep(5, AbortSignal.timeout(20_000));
    }
    silent.close();
    assert.equal((await client.get("/readyz")).code, 200);
  });

  test("a pod that answers an upgrade with an endless page fills no memory", { skip: !machineAddress }, async () => {
    let sent = 0;
    const endless = createServer((_, response) => {
      const page = Buffer.alloc(256 * 1024, "x");
      const more = (): void => {
        while (!response.destroyed && sent < 512 * 1024 * 1024) {
          sent += page.length;
          if (!response.write(page)) return void response.once("drain", more);
        }
      };
      more();
    });
    const port = await listening(endless, machineAddress ?? "");
    await podAt("endless", machineAddress ?? "", port);
    const call = send(`${pods}/endless/proxy/`, { headers: { connection: "upgrade", upgrade: "x" } });
    call.end();
    const [response] = await once(call, "response");
    assert.equal(response.statusCode, 200);
    // Nobody reads, so that after what the kernel and the streams hold nothing comes any more.
    let before = -1;
    while (before !== sent) {
      before = sent;
      await systemClock.sleep(200, AbortSignal.timeout(20_000));
    }
    assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were taken from the pod for a client that reads none`);
    call.destroy();
    endless.closeAllConnections();
    endless.close();
  });

  test("a page in other letters than ours is passed on whole when an upgrade is refused", {
    skip: !machineAddress,
  }, async () => {
    const page = "Größe: 木";
    const plain = createServer((_, response) => response.writeHead(404).end(page));
    const port = await listening(plain, machineAddress ?? "");
    await podAt("plain", machineAddress ?? "", port);
    const call = send(`${pods}/plain/proxy/`, { headers: { connection: "upgrade", upgrade: "x" } });
    call.end();
    const [response] = await once(call, "response");
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += chunk;
    assert.equal(text, page);
    plain.close();
  });

  test("paths reach the pod as they were meant", { skip: !machineAddress }, async () => {
    const urls: unknown[] = [];
    const echo = createServer(({ url }, response) => {
      urls.push(url);
      response.end();
    });
    const port = await listening(echo, machineAddress ?? "");
    await podAt("echo", machineAddress ?? "", port);
    for (const path of ["a%20b", "a%3Fb", "a%0d%0aX:%20y", "a?q=1&q=2"]) {
      assert.equal((await client.get(`${pods}/echo/proxy/${path}`)).code, 200, path);
    }
    assert.deepEqual(urls, ["/a%20b", "/a%3Fb", "/a%0D%0AX%3A%20y", "/a?q=1&q=2"]);
    echo.close();
  });
});
