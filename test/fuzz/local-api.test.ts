// Requests of all kinds, right and wrong, by both versions of HTTP, of clients that stay and clients that leave.

import assert from "node:assert/strict";
import type { EventEmitter } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { startLocalApi } from "../../src/beside/localapi/index.ts";
import { type Logger, silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { type ApiAccess, ApiClient, accessOf, at } from "../contract/api/client.ts";
import { until } from "../support/until.ts";
import { type FuzzRandom, type FuzzRun, fuzzTest, patienceMs } from "./fuzzing.ts";
import { openDescriptors } from "./leaks.ts";

const container = { name: "main", image: "registry.invalid/none:1" };

/** Objects of many kinds, each with what makes it valid. */
const samples: readonly { readonly path: string; readonly object: object }[] = [
  { path: "/api/v1/namespaces/default/configmaps", object: { data: { a: "1", b: "2" } } },
  { path: "/api/v1/namespaces/default/secrets", object: { stringData: { a: "1" } } },
  { path: "/api/v1/namespaces/default/pods", object: { spec: { containers: [container] } } },
  {
    path: "/api/v1/namespaces/default/pods",
    object: {
      spec: { nodeName: "n1", containers: [{ ...container, ports: [{ containerPort: 80 }] }], tolerations: [] },
    },
  },
  { path: "/api/v1/namespaces/default/services", object: { spec: { ports: [{ port: 80 }], selector: { a: "b" } } } },
  { path: "/api/v1/namespaces/default/serviceaccounts", object: {} },
  { path: "/api/v1/namespaces/default/events", object: { involvedObject: { kind: "Pod", name: "x" }, reason: "r" } },
  { path: "/api/v1/nodes", object: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
  { path: "/api/v1/namespaces", object: {} },
  { path: "/apis/apps/v1/namespaces/default/deployments", object: { spec: { replicas: 1 } } },
  { path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", object: { spec: { holderIdentity: "x" } } },
  { path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets", object: { spec: { minAvailable: 1 } } },
  {
    path: "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    object: {
      spec: {
        request: Buffer.from("-----BEGIN CERTIFICATE REQUEST-----").toString("base64"),
        signerName: "kubernetes.io/kube-apiserver-client",
        usages: ["client auth"],
      },
    },
  },
];
const names = ["a", "b", "c", "kubernetes", "default", "n1"];
const subresources = [
  "status",
  "scale",
  "binding",
  "eviction",
  "ephemeralcontainers",
  "resize",
  "token",
  "log",
  "exec",
].concat("attach", "portforward", "proxy", "proxy/a/b", "approval", "finalize", "nonsense");
const oddPaths = [
  "/",
  "/api",
  "/apis",
  "/api/v1",
  "/openapi/v2",
  "/openapi/v3",
  "/version",
  "/healthz",
  "/%2e%2e/api",
].concat(
  "/api/v1/nodes/%00",
  "/api/v1//nodes",
  "/apis/metrics.k8s.io/v1beta1/nodes",
  "/api/v1/%ff",
  "/apis/x/y/z/a/b/c/d",
);
const patchTypes = ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"];
const contentTypes = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", ""];
const accepts = ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*", ""].concat(
  "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
  "application/vnd.kubernetes.protobuf",
);

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isWatch: boolean;
}

/** A value of any shape; small ones are likely. */
function anyValue(random: FuzzRandom, depth = 0): unknown {
  const simple = (): unknown => random.pick([null, true, 0, -1, 1.5, 1e300, "", "x", "$(a", random.text(20), "1Gi"]);
  if (depth > 3 || random.chance(0.6)) return simple();
  if (random.chance(0.5)) return Array.from({ length: random.below(4) }, () => anyValue(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length: random.below(4) }, () => [anyKey(random), anyValue(random, depth + 1)]),
  );
}

function anyKey(random: FuzzRandom): string {
  const known = ["metadata", "spec", "status", "name", "labels", "annotations", "containers", "data", "conditions"];
  const directives = ["$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"];
  return random.pick([...known, ...directives, "type", "finalizers", "ownerReferences", "replicas", random.text(8)]);
}

/** The object with some of its parts put to another use. */
function bent(random: FuzzRandom, value: unknown): unknown {
  if (random.chance(0.1)) return anyValue(random);
  if (Array.isArray(value)) return value.map((item) => bent(random, item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, bent(random, item)]);
  if (random.chance(0.2)) entries.push([anyKey(random), anyValue(random)]);
  return Object.fromEntries(entries);
}

function anyPatch(random: FuzzRandom, type: string, object: object): unknown {
  if (type !== "json-patch+json") return bent(random, object);
  const pointer = (): string =>
    random.pick(["", "/metadata", "/metadata/labels", "/spec", "/spec/containers/0", "/data/a", "/-", random.text(10)]);
  return Array.from({ length: random.below(6) }, () => ({
    op: random.pick(["add", "remove", "replace", "move", "copy", "test", "frob"]),
    path: pointer(),
    from: pointer(),
    value: anyValue(random),
  }));
}

function anyQuery(random: FuzzRandom): string {
  const query = new URLSearchParams();
  const add = (key: string, values: readonly string[]): void => {
    if (random.chance(0.15)) query.append(key, random.pick(values));
  };
  add("labelSelector", ["a=b", "a in (b,c)", "!a", "a>1", "a in (", ",,,", random.text(30)]);
  add("fieldSelector", ["metadata.name=a", "spec.nodeName=n1", "metadata.name!=a,", "x=y", random.text(30)]);
  add("limit", ["1", "0", "-1", "x", "99999999999"]);
  add("continue", ["x", Buffer.from('{"after":"a","revision":5}').toString("base64url"), random.text(20)]);
  add("resourceVersion", ["0", "1", "5", "99999999", "-1", "x", ""]);
  add("resourceVersionMatch", ["Exact", "NotOlderThan", "x"]);
  add("sendInitialEvents", ["true", "false", "x"]);
  add("allowWatchBookmarks", ["true", "false"]);
  add("timeoutSeconds", ["1", "0", "-1", "x"]);
  add("fieldManager", ["f", ""]);
  add("force", ["true"]);
  add("dryRun", ["All", "x"]);
  add("fieldValidation", ["Strict", "Warn", "Ignore", "x"]);
  add("propagationPolicy", ["Orphan", "Foreground", "Background", "x"]);
  add("gracePeriodSeconds", ["0", "1", "-1", "x"]);
  return query.toString();
}

function anyRequest(random: FuzzRandom): Asked {
  const { path, object } = random.pick(samples);
  const name = random.pick(names);
  const named = { metadata: { name }, ...object };
  const isWatch = random.chance(0.15);
  const query = [anyQuery(random), isWatch ? "watch=1" : ""].filter(Boolean).join("&");
  const method = isWatch
    ? "GET"
    : random.pick(["GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "FROB"]);
  const isOfMany = method === "POST" || isWatch || random.chance(0.2);
  // The server's own namespace stays, or every later request would only hear that it is gone.
  const isFatal = method === "DELETE" && path === "/api/v1/namespaces";
  let place = random.chance(0.05) || isFatal ? random.pick(oddPaths) : isOfMany ? path : `${path}/${name}`;
  if (random.chance(0.2)) place += `/${random.pick(subresources)}`;
  if (random.chance(0.03)) place += encodeURIComponent(random.text(10));
  const type = random.pick(patchTypes);
  const contentType =
    method === "PATCH" ? `application/${type}` : random.chance(0.9) ? "application/json" : random.pick(contentTypes);
  let body = "";
  if (["POST", "PUT", "PATCH", "DELETE"].includes(method)) {
    const value = method === "PATCH" ? anyPatch(random, type, named) : random.chance(0.6) ? named : bent(random, named);
    body = JSON.stringify(value) ?? "";
    if (random.chance(0.05)) body = body.slice(0, random.below(body.length + 1));
    if (random.chance(0.02)) body = random.bytes(200).toString("latin1");
    if (random.chance(0.01)) body = `{"metadata":{"name":"a"},"data":{"x":"${"y".repeat(random.below(400_000))}"}}`;
    if (random.chance(0.01)) body = "[".repeat(random.below(100_000));
  }
  const headers = { "content-type": contentType, accept: random.pick(accepts) };
  return { method, path: `${place}${query === "" ? "" : `?${query}`}`, body, headers, isWatch };
}

/** Resolves when the exchange is over. `events.once` would take an error for the end. */
function closing(emitter: EventEmitter, what: string, state?: () => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = systemClock.after(patienceMs, () =>
      reject(new Error(`never answered: ${what} ${JSON.stringify(state?.())}`)),
    );
    emitter.once("close", () => {
      timer.cancel();
      resolve();
    });
  });
}

const described = (asked: Asked): string => JSON.stringify({ ...asked, body: asked.body.slice(0, 500) });

/** Sends it by HTTP/1.1 and reads the answer, or leaves at some moment. */
async function byHttp1(access: ApiAccess, asked: Asked, random: FuzzRandom): Promise<number> {
  const { certPem: cert, keyPem: key, caPem: ca, server } = access;
  const leaves = asked.isWatch || random.chance(0.15);
  const leaveAfterMs = random.below(30);
  const headers = random.chance(0.05) ? { ...asked.headers, connection: "upgrade", upgrade: "x" } : asked.headers;
  const call = request(`${server}${asked.path}`, { method: asked.method, cert, key, ca, headers, agent: false });
  call.on("error", () => {});
  const closed = closing(call, `HTTP/1.1 ${described(asked)}`);
  let code = 0;
  call.on("response", (response) => {
    code = response.statusCode ?? 0;
    response.on("error", () => {}).resume();
  });
  call.on("upgrade", (_, socket) => socket.destroy());
  if (leaves) {
    call.write(asked.body.slice(0, asked.body.length / 2));
    if (random.chance(0.5)) call.end(asked.body.slice(asked.body.length / 2));
    systemClock.after(leaveAfterMs, () => call.destroy());
  } else call.end(asked.body);
  await closed;
  return code;
}

async function byHttp2(session: ClientHttp2Session, asked: Asked, random: FuzzRandom): Promise<number> {
  // Node takes GET, HEAD and DELETE for requests without a body, and a stream that gets one all the same stops reading:
  // the rest of an answer larger than its window would never come.
  const stream = session.request(
    { ":method": asked.method, ":path": asked.path, ...asked.headers },
    { endStream: false },
  );
  stream.on("error", () => {});
  let code = 0;
  const closed = closing(stream, `HTTP/2 ${described(asked)}`, () => ({
    code,
    stream: {
      id: stream.id,
      pending: stream.pending,
      ended: stream.writableFinished,
      rst: stream.rstCode,
      ...stream.state,
    },
    session: { closed: session.closed, destroyed: session.destroyed, ...session.state },
  }));
  stream.on("response", (headers) => {
    code = headers[":status"] ?? 0;
  });
  stream.resume();
  if (asked.isWatch || random.chance(0.15)) {
    if (asked.body !== "") stream.write(asked.body.slice(0, asked.body.length / 2));
    systemClock.after(random.below(30), () => stream.destroy());
  } else stream.end(asked.body);
  await closed;
  return code;
}

/** Bytes that are no HTTP at all. */
async function byNoise(access: ApiAccess, random: FuzzRandom): Promise<void> {
  const { hostname, port } = new URL(access.server);
  const ALPNProtocols = random.pick([["h2"], ["http/1.1"], []]);
  const socket = connectTls({ host: hostname, port: Number(port), ca: access.caPem, ALPNProtocols });
  socket.on("error", () => {});
  const closed = closing(socket, "noise");
  socket.write(random.chance(0.5) ? random.bytes(100) : `GET /${random.text(50)} HTTP/1.1\r\nX: y\r\n`);
  systemClock.after(random.below(30), () => socket.destroy());
  await closed;
}

async function ask(access: ApiAccess, run: FuzzRun, codes: Map<number, number>): Promise<void> {
  const { random } = run;
  let session: ClientHttp2Session | undefined;
  while (run.goesOn()) {
    const code = await oneOf();
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  session?.destroy();

  async function oneOf(): Promise<number> {
    if (random.chance(0.02)) return byNoise(access, random).then(() => 0);
    if (random.chance(0.4)) return await byHttp1(access, anyRequest(random), random);
    if (session === undefined || session.destroyed || random.chance(0.01)) {
      session?.destroy();
      const { certPem: cert, keyPem: key, caPem: ca, server } = access;
      session = connectHttp2(server, { ca, ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) });
      session.on("error", () => {});
    }
    return await byHttp2(session, anyRequest(random), random);
  }
}

fuzzTest(
  "the local API survives what clients send, and leaves nothing behind",
  async (run) => {
    const dir = await mkdtemp(join(tmpdir(), "api-fuzz-"));
    try {
      const defects: unknown[] = [];
      const log: Logger = {
        ...silentLogger,
        error: (message, error, fields) => void defects.push([message, error, fields]),
      };
      const start = () => startLocalApi({ dir, log });
      const before = openDescriptors();
      const codes = new Map<number, number>();
      let shown: unknown;
      {
        await using api = await start();
        const [admin, node] = [accessOf(await api.adminKubeconfig()), accessOf(await api.nodeKubeconfig("n1"))];
        await Promise.all([admin, admin, admin, node].map((access) => ask(access, run, codes)));
        await until("no watcher is left", () => api.watcherCount === 0);
        assert.ok(!api.failed.aborted, String(api.failed.reason));
        using client = new ApiClient(admin);
        shown = await everything(client);
      }
      assert.ok((codes.get(200) ?? 0) > 0 && (codes.get(201) ?? 0) > 0, JSON.stringify([...codes]));
      // What is a client's fault is answered; what is logged as an error is ours.
      assert.deepEqual(defects, []);
      // What the disk has is what clients were shown.
      {
        await using api = await start();
        using client = new ApiClient(accessOf(await api.adminKubeconfig()));
        assert.deepEqual(await everything(client), shown);
      }
      await until("no file or socket is left", () => openDescriptors() <= before + 2);
    } finally {
      await rm(dir, { recursive: true });
    }
  },
  { standstillMs: 1_000 },
);

/** All objects by kind, but for what each start makes anew. */
async function everything(client: ApiClient): Promise<unknown> {
  const shown: Record<string, unknown> = {};
  for (const path of new Set(samples.map((sample) => sample.path.replace(/namespaces\/[^/]+\//, "")))) {
    const { code, body } = await client.get(path);
    assert.equal(code, 200, path);
    const items = at(body, "items") as readonly object[];
    shown[path] = items.filter((item) => at(item, "metadata", "name") !== "kubernetes");
  }
  return shown;
}
