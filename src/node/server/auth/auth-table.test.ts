import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Endpoint, endpointsOf } from "../../../../test/support/api-endpoints.ts";
import { CertificateAuthority, type KeyPair } from "../../../../test/support/certificates.ts";
import { allOn, apiPorts, FakeViews, noStatistics, TestServer } from "../../../../test/support/node-api.ts";
import { upgrade } from "../../../../test/support/spdy.ts";
import { FakeRuntime } from "../../../beside/hollow/index.ts";
import { silentLogger, systemClock } from "../../../ground/base/index.ts";
import type { SubjectAccessReviewSpec } from "../../../ground/model/index.ts";
import { nodeApiMounts } from "../api/node-api.ts";
import type { ApiMount } from "../api/router.ts";
import { containerLogsService } from "../logs/container-logs.ts";
import { MetricRegistries } from "../metric-registries.ts";
import { figureMounts } from "../serve-node-api.ts";
import { AccessAuthorizer } from "./access-authorizer.ts";
import type { AuthorizationGrain } from "./attributes.ts";
import { Gatekeeper } from "./gatekeeper.ts";
import { PatientReviews, type Reviews } from "./reviews.ts";
import { TokenAuthenticator } from "./token-authenticator.ts";

let authority: CertificateAuthority;
let serving: KeyPair;
const clients: Record<"admin" | "stranger" | "nobody" | "foreign", KeyPair> = {
  admin: { certPem: "", keyPem: "" },
  stranger: { certPem: "", keyPem: "" },
  nobody: { certPem: "", keyPem: "" },
  foreign: { certPem: "", keyPem: "" },
};

before(async () => {
  authority = await CertificateAuthority.create("clients");
  const other = await CertificateAuthority.create("elsewhere");
  serving = await authority.issueServer({ commonName: "node" }, ["127.0.0.1"]);
  clients.admin = await authority.issueClient({ commonName: "admin", organizations: ["system:masters"] });
  clients.stranger = await authority.issueClient({ commonName: "stranger" });
  clients.nobody = await authority.issueClient({ commonName: "" });
  clients.foreign = await other.issueClient({ commonName: "admin", organizations: ["system:masters"] });
});

/** An API server that knows two tokens, and lets through whoever is admin, or whoever the test says. */
class FakeReviews implements Reviews {
  readonly tokens: string[] = [];
  readonly asked: SubjectAccessReviewSpec[] = [];
  allows: (spec: SubjectAccessReviewSpec) => boolean = ({ user }) => user === "admin";
  failure: Error | undefined;
  async token(token: string) {
    this.tokens.push(token);
    if (this.failure !== undefined) throw this.failure;
    if (token === "admin-token") return { authenticated: true, user: { username: "admin", groups: ["ops"], uid: "7" } };
    if (token === "stranger-token") return { authenticated: true, user: { username: "stranger" } };
    return { authenticated: false, error: "unknown" };
  }
  async access(spec: SubjectAccessReviewSpec) {
    this.asked.push(spec);
    if (this.failure !== undefined) throw this.failure;
    return { allowed: this.allows(spec) };
  }
  isTransient(): boolean {
    return false;
  }
}

interface Setting {
  readonly anonymous?: boolean;
  readonly webhook?: boolean;
  readonly mode?: "Webhook" | "AlwaysAllow";
  readonly clientCa?: boolean;
  readonly grain?: AuthorizationGrain;
  readonly reviews?: FakeReviews;
}

async function start(setting: Setting = {}) {
  const { reviews = new FakeReviews(), clientCa = true, mode = "Webhook", webhook = true } = setting;
  const asked = new PatientReviews({ reviews, clock: systemClock, random: Math.random });
  const access = { nodeName: "n1", allowedTtlMs: 300_000, deniedTtlMs: 30_000 };
  const gate = new Gatekeeper({
    tokens: webhook ? new TokenAuthenticator(120_000, asked, systemClock) : undefined,
    certificates: clientCa,
    allowAnonymous: setting.anonymous ?? false,
    access: mode === "Webhook" ? new AccessAuthorizer(access, asked, systemClock) : undefined,
    grain: setting.grain ?? "fine",
    clock: systemClock,
    log: silentLogger,
  });
  const tls = { cert: serving.certPem, key: serving.keyPem, ...(clientCa && { ca: authority.certPem }) };
  return { server: await TestServer.start(everything(), { gate }, tls), reviews };
}

/** What each endpoint of the router answers to somebody who may ask; this node has no pods. */
const answers: Readonly<Record<string, number>> = {
  "GET /healthz": 200,
  "GET /healthz/ping": 200,
  "GET /pods/": 200,
  "GET /runningpods/": 200,
  "GET /stats/summary": 500,
  "POST /stats/summary": 500,
  "GET /dashboard/": 200,
  "GET /dashboard/{path*}": 404,
  "GET /configz": 200,
  "GET /flagz": 200,
  "GET /statusz": 200,
  "GET /debug/flags/v": 406,
  "GET /debug/pprof/{name*}": 404,
  "GET /logs/": 200,
  "GET /logs/{path*}": 404,
  "GET /exec/{namespace}/{pod}/{container}": 400,
  "POST /exec/{namespace}/{pod}/{container}": 400,
  "GET /exec/{namespace}/{pod}/{uid}/{container}": 400,
  "POST /exec/{namespace}/{pod}/{uid}/{container}": 400,
  "GET /attach/{namespace}/{pod}/{container}": 400,
  "POST /attach/{namespace}/{pod}/{container}": 400,
  "GET /attach/{namespace}/{pod}/{uid}/{container}": 400,
  "POST /attach/{namespace}/{pod}/{uid}/{container}": 400,
  "GET /portForward/{namespace}/{pod}": 404,
  "POST /portForward/{namespace}/{pod}": 404,
  "GET /portForward/{namespace}/{pod}/{uid}": 404,
  "POST /portForward/{namespace}/{pod}/{uid}": 404,
  "POST /run/{namespace}/{pod}/{container}": 404,
  "POST /run/{namespace}/{pod}/{uid}/{container}": 404,
  "POST /checkpoint/{namespace}/{pod}/{container}": 404,
  "GET /containerLogs/{namespace}/{pod}/{container}": 404,
};

/** What the router knows besides: methods, profiles, paths that lead nowhere. */
const besides: readonly (readonly [method: string, path: string, allowed: number])[] = [
  ["PUT", "/debug/flags/v", 400],
  ["GET", "/debug/pprof/cmdline", 200],
  ["DELETE", "/pods", 405],
  ["GET", "/pods/unknown", 404],
  ["GET", "/exec/a/b/c?output=1", 404],
  ["POST", "/attach/a/b/c?output=1", 404],
];

function everything(): ApiMount[] {
  const runtime = new FakeRuntime({ clock: systemClock }).runtime;
  const ports = apiPorts({ runtime, views: new FakeViews() });
  const containerLogs = containerLogsService({ ...ports, splitStreams: false });
  const figures = figureMounts({ figures: new MetricRegistries(), statistics: noStatistics, log: silentLogger });
  return [...nodeApiMounts({ ...allOn, flagz: true, statusz: true }, { ...ports, containerLogs, figures })];
}

const keyOf = ({ method, pattern }: Endpoint): string => `${method} ${pattern}`;
const answerOf = (endpoint: Endpoint): number | undefined =>
  endpoint.pattern.startsWith("/metrics") ? 200 : answers[keyOf(endpoint)];

const endpoints: readonly (readonly [method: string, path: string, allowed: number | undefined])[] = [
  ...endpointsOf(everything()).map((endpoint) => [endpoint.method, endpoint.path, answerOf(endpoint)] as const),
  ...besides,
];

test("the table knows every endpoint of the router, and no other", () => {
  const all = endpointsOf(everything());
  assert.deepEqual(all.filter((endpoint) => answerOf(endpoint) === undefined).map(keyOf), []);
  const keys = all.map(keyOf);
  assert.deepEqual(
    Object.keys(answers).filter((key) => !keys.includes(key)),
    [],
  );
});

const credentials = {
  none: {},
  foreign: { client: "foreign" },
  stranger: { client: "stranger" },
  admin: { client: "admin" },
  wrongToken: { token: "guess" },
  strangerToken: { token: "stranger-token" },
  adminToken: { token: "admin-token" },
  foreignWithToken: { client: "foreign", token: "admin-token" },
} as const satisfies Record<string, { client?: keyof typeof clients; token?: string }>;

async function ask(server: TestServer, method: string, path: string, who: keyof typeof credentials) {
  const { client, token }: { client?: keyof typeof clients; token?: string } = credentials[who];
  const pair = client === undefined ? undefined : clients[client];
  return await server.ask(path, {
    method,
    headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
    client: pair === undefined ? {} : { cert: pair.certPem, key: pair.keyPem },
  });
}

for (const [who, anonymous, expected] of [
  ["none", false, 401],
  ["none", true, 403],
  ["foreign", false, 401],
  ["foreign", true, 401],
  ["wrongToken", false, 401],
  ["wrongToken", true, 401],
  ["stranger", false, 403],
  ["strangerToken", true, 403],
  ["admin", false, "allowed"],
  ["adminToken", false, "allowed"],
  ["foreignWithToken", true, "allowed"],
] as const) {
  test(`every endpoint: credentials ${who}, anonymous ${anonymous ? "on" : "off"} gives ${expected}`, async () => {
    const { server } = await start({ anonymous });
    await using _ = server;
    for (const [method, path, allowed] of endpoints) {
      const answer = await ask(server, method, path, who);
      assert.equal(answer.status, expected === "allowed" ? allowed : expected, `${method} ${path}: ${answer.text}`);
    }
  });
}

test("an upgrade is no way around the gate", async () => {
  const { server } = await start({ anonymous: true });
  await using _ = server;
  for (const path of ["/exec/a/b/c?output=1", "/attach/a/b/c?output=1", "/portForward/a/b", "/pods", "/run/a/b/c"]) {
    for (const protocol of ["SPDY/3.1", "websocket"]) {
      const ask = (headers: Record<string, string>) =>
        upgrade({ port: server.port, path, secure: true, headers }, { Upgrade: protocol });
      const strangers = await ask({});
      assert.deepEqual([strangers.type, strangers.type === "refused" && strangers.status], ["refused", 403], path);
      const guess = await ask({ Authorization: "Bearer guess" });
      assert.deepEqual([guess.type, guess.type === "refused" && guess.status], ["refused", 401], path);
    }
  }
});

test("anonymous is let in where it is allowed, and as AlwaysAllow says", async () => {
  const reviews = new FakeReviews();
  reviews.allows = ({ user, groups }) => user === "system:anonymous" && groups?.[0] === "system:unauthenticated";
  const { server } = await start({ anonymous: true, reviews });
  await using _ = server;
  const open = await start({ anonymous: true, mode: "AlwaysAllow" });
  await using __ = open.server;
  for (const [method, path, allowed] of endpoints) {
    assert.equal((await ask(server, method, path, "none")).status, allowed, `${method} ${path}`);
    assert.equal((await ask(open.server, method, path, "none")).status, allowed, `${method} ${path}`);
  }
});

test("AlwaysAllow still wants to know who it is; without authority or webhook that is nobody", async () => {
  const { server } = await start({ mode: "AlwaysAllow" });
  await using _ = server;
  assert.equal((await ask(server, "GET", "/pods", "none")).status, 401);
  assert.equal((await ask(server, "GET", "/pods", "stranger")).status, 200);
  const shut = await start({ mode: "AlwaysAllow", webhook: false, clientCa: false });
  await using __ = shut.server;
  for (const who of Object.keys(credentials) as (keyof typeof credentials)[]) {
    assert.equal((await ask(shut.server, "GET", "/pods", who)).status, 401, who);
  }
});

test("paths that are nowhere answer before anybody is asked for", async () => {
  const { server, reviews } = await start();
  await using _ = server;
  for (const [path, status] of [
    ["/", 404],
    ["/nowhere", 404],
    ["/podsx", 404],
    ["//pods", 301],
    ["/pods/../exec/a/b/c", 301],
    ["/logs", 301],
    ["/pods/%2e%2e/x", 301],
  ] as const) {
    assert.equal((await ask(server, "GET", path, "none")).status, status, path);
  }
  assert.deepEqual(reviews.asked, []);
});

test("the bodies of refusals, without a challenge", async () => {
  const { server, reviews } = await start();
  await using _ = server;
  const unknown = await ask(server, "GET", "/pods", "none");
  assert.deepEqual([unknown.text, unknown.headers["www-authenticate"]], ["Unauthorized", undefined]);
  const forbidden = await ask(server, "GET", "/pods", "stranger");
  assert.equal(forbidden.text, "Forbidden (user=stranger, verb=get, resource=nodes, subresource(s)=[pods proxy])\n");
  assert.equal(
    (await ask(server, "OPTIONS", "/exec/a/b/c", "stranger")).text,
    "Forbidden (user=stranger, verb=, resource=nodes, subresource(s)=[proxy])\n",
  );
  reviews.failure = new Error("no API server");
  const failed = await ask(server, "GET", "/configz", "stranger");
  assert.deepEqual(
    [failed.status, failed.text],
    [500, "Authorization error (user=stranger, verb=get, resource=nodes, subresource=configz)"],
  );
  assert.equal((await ask(server, "GET", "/configz", "adminToken")).status, 401);
});

test("what is asked of the API server: narrow first, then proxy, and who it is", async () => {
  const { server, reviews } = await start();
  await using _ = server;
  reviews.allows = ({ resourceAttributes }) => resourceAttributes?.subresource === "proxy";
  assert.equal((await ask(server, "GET", "/pods", "adminToken")).status, 200);
  assert.deepEqual(
    reviews.asked.map(({ resourceAttributes }) => resourceAttributes?.subresource),
    ["pods", "proxy"],
  );
  assert.deepEqual(reviews.asked[0], {
    user: "admin",
    groups: ["ops", "system:authenticated"],
    uid: "7",
    resourceAttributes: { verb: "get", version: "v1", resource: "nodes", subresource: "pods", name: "n1" },
  });
  await ask(server, "GET", "/pods", "admin");
  const byCertificate = reviews.asked.at(-1);
  assert.deepEqual(byCertificate?.groups, ["system:masters", "system:authenticated"]);
  assert.match(
    byCertificate?.extra?.["authentication.kubernetes.io/credential-id"]?.[0] ?? "",
    /^X509SHA256=[0-9a-f]{64}$/,
  );
});

test("without the gate only proxy is asked for", async () => {
  const { server, reviews } = await start({ grain: "coarse" });
  await using _ = server;
  await ask(server, "GET", "/pods", "stranger");
  assert.deepEqual(
    reviews.asked.map(({ resourceAttributes }) => resourceAttributes?.subresource),
    ["proxy"],
  );
});

test("a certificate without a name proves nothing, so that a token may", async () => {
  const { server } = await start();
  await using _ = server;
  const { certPem: cert, keyPem: key } = clients.nobody;
  assert.equal((await server.ask("/pods", { client: { cert, key } })).status, 401);
  const headers = { Authorization: "bearer admin-token" };
  assert.equal((await server.ask("/pods", { client: { cert, key }, headers })).status, 200);
});

test("a serving certificate does not identify a client", async () => {
  const { server } = await start({ anonymous: true, mode: "AlwaysAllow" });
  await using _ = server;
  const answer = await server.ask("/pods", { client: { cert: serving.certPem, key: serving.keyPem } });
  assert.equal(answer.status, 401);
});

test("answers are remembered for their time", async () => {
  const { server, reviews } = await start();
  await using _ = server;
  for (let round = 0; round < 3; round++) {
    assert.equal((await ask(server, "GET", "/configz", "adminToken")).status, 200);
    assert.equal((await ask(server, "GET", "/configz", "wrongToken")).status, 401);
    assert.equal((await ask(server, "GET", "/flagz", "stranger")).status, 403);
  }
  assert.deepEqual(reviews.tokens, ["admin-token", "guess"]);
  assert.equal(reviews.asked.length, 2);
});
