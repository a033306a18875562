import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointsOf } from "../../../../test/support/api-endpoints.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { allOn, apiPorts, FakeViews, noStatistics, TestServer } from "../../../../test/support/node-api.ts";
import { FakeRuntime } from "../../../beside/hollow/index.ts";
import { ContainerConfig, CriError, PodSandboxConfig, type RuntimeService } from "../../../connections/cri/index.ts";
import { silentLogger, systemClock } from "../../../ground/base/index.ts";
import type { Pod, PodUid } from "../../../ground/model/index.ts";
import { HealthRegistry } from "../index.ts";
import { MetricRegistries } from "../metric-registries.ts";
import { figureMounts } from "../serve-node-api.ts";
import { openGate } from "./gate.ts";
import { type ApiPorts, type ApiSettings, nodeApiMounts, readOnlyMounts } from "./node-api.ts";
import { NodeServer } from "./node-server.ts";

const web: Pod = {
  metadata: { name: "web", namespace: "shop", uid: "uid-web" },
  spec: {
    containers: [
      { name: "main", image: "busybox" },
      { name: "late", image: "busybox" },
    ],
  },
  status: { phase: "Running" },
};

/** A runtime in which the container `main` of `web` runs. */
async function runtimeWithWeb(): Promise<FakeRuntime> {
  const fake = new FakeRuntime({ clock: systemClock, logs: "none" });
  const labels = { "io.kubernetes.pod.uid": "uid-web" };
  const config = PodSandboxConfig.fromPartial({
    metadata: { name: "web", namespace: "shop", uid: "uid-web", attempt: 0 },
    labels,
  });
  const { podSandboxId } = await fake.runtime.runPodSandbox({ config, runtimeHandler: "" });
  const container = ContainerConfig.fromPartial({
    metadata: { name: "main", attempt: 0 },
    image: { image: "busybox" },
    command: ["sleep", "3600"],
    labels: { ...labels, "io.kubernetes.container.name": "main" },
  });
  await fake.images.pullImage({ image: container.image, auth: undefined, sandboxConfig: config });
  const { containerId } = await fake.runtime.createContainer({
    podSandboxId,
    config: container,
    sandboxConfig: config,
  });
  await fake.runtime.startContainer({ containerId });
  return fake;
}

async function start(settings: Partial<ApiSettings> = {}, given: Partial<ApiPorts> = {}) {
  const fake = await runtimeWithWeb();
  const views = new FakeViews(web);
  views.mirrors.set("uid-mirror", "uid-web" as PodUid);
  const ports = apiPorts({ runtime: fake.runtime, views, ...given });
  const server = await TestServer.start(nodeApiMounts({ ...allOn, ...settings }, ports));
  return { server, fake, ports };
}

const cases: readonly {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  readonly text?: string | RegExp;
  readonly type?: string;
}[] = [
  { path: "/", status: 404, text: "404 page not found\n" },
  { path: "/spec/", status: 404, text: "404 page not found\n" },
  { path: "/healthz", status: 200, text: "ok", type: "text/plain; charset=utf-8" },
  { path: "/healthz", method: "POST", status: 200, text: "ok" },
  { path: "/healthz?verbose", status: 200, text: /^\[\+\]ping ok\n.*healthz check passed\n$/s },
  { path: "/healthz/ping", status: 200, text: "ok" },
  { path: "/healthz/other", status: 404, text: "404 page not found\n" },
  { path: "/pods", status: 200, type: "application/json", text: /"kind":"PodList","apiVersion":"v1","metadata":\{\}/ },
  { path: "/pods/", status: 200, text: /"name":"web"/ },
  { path: "/pods", headers: { Accept: "text/html" }, status: 406, text: /^406: Not Acceptable/ },
  { path: "/pods", method: "POST", status: 405, text: "405: Method Not Allowed" },
  { path: "/pods/x", status: 404, text: "404: Page Not Found" },
  { path: "//pods", status: 301, text: '<a href="/pods">Moved Permanently</a>.\n\n' },
  { path: "/runningpods", status: 301, text: '<a href="/runningpods/">Moved Permanently</a>.\n\n' },
  {
    path: "/runningpods/",
    status: 200,
    text: /"metadata":\{"name":"web","namespace":"shop","uid":"uid-web"\},"spec":\{"containers":\[\{"name":"main","image":"/,
  },
  { path: "/configz", status: 200, type: "application/json", text: '{"kubeletconfig":{"port":10250}}' },
  { path: "/run/shop/web/main?cmd=echo%20hi", method: "POST", status: 200, type: "application/json", text: "hi\n" },
  { path: "/run/shop/web/uid-web/main?cmd=echo%20hi", method: "POST", status: 200, text: "hi\n" },
  { path: "/run/shop/web/uid-mirror/main?cmd=echo%20hi", method: "POST", status: 200, text: "hi\n" },
  {
    path: "/run/shop/web/other-uid/main?cmd=true",
    method: "POST",
    status: 500,
    text: 'container not found ("main")',
  },
  { path: "/run/shop/web/main?cmd=false", method: "POST", status: 500, text: "command 'false' exited with 1: " },
  { path: "/run/shop/web/main?cmd=true", status: 405, text: "405: Method Not Allowed" },
  { path: "/run/shop/gone/main?cmd=true", method: "POST", status: 404, text: "pod does not exist" },
  { path: "/run/shop/web/late?cmd=true", method: "POST", status: 500, text: 'container not found ("late")' },
  {
    path: "/exec/shop/web/main?command=true",
    method: "POST",
    status: 400,
    text: "you must specify at least 1 of stdin, stdout, stderr",
  },
  { path: "/exec/shop/web/main?command=true&output=1", method: "POST", status: 500, text: "Upgrade request required" },
  { path: "/exec/shop/gone/main?output=1", status: 404, text: "pod does not exist" },
  { path: "/attach/shop/web/main?output=true", status: 400, text: /^you must specify/ },
  { path: "/attach/shop/web/main?output=1", status: 500, text: "Upgrade request required" },
  { path: "/portForward/shop/web", method: "POST", status: 500, text: "Upgrade request required" },
  { path: "/portForward/shop/web/uid-mirror", method: "POST", status: 500, text: "Upgrade request required" },
  { path: "/portForward/shop/web/other-uid", method: "POST", status: 404, text: "pod not found" },
  { path: "/portforward/shop/web", method: "POST", status: 404, text: "404 page not found\n" },
  {
    path: "/checkpoint/shop/web/main?timeout=soon",
    method: "POST",
    status: 404,
    text: "cannot parse value of timeout parameter",
  },
  { path: "/checkpoint/shop/web/other", method: "POST", status: 404, text: "container other does not exist" },
  {
    path: "/checkpoint/shop/web/main",
    method: "POST",
    status: 500,
    text: /^checkpointing of shop\/web\/main failed \(rpc error: code = Unimplemented/,
  },
  { path: "/checkpoint/shop/web/main?timeout=-1", method: "POST", status: 500, text: /^checkpointing of .* failed/ },
  {
    path: "/debug/flags/v",
    method: "PUT",
    body: "4",
    status: 200,
    text: "successfully set klog.logging.verbosity to 4",
  },
  { path: "/debug/flags/v", method: "PUT", body: "four", status: 400 },
  { path: "/debug/flags/v", status: 406, text: "unsupported http method" },
  { path: "/debug/pprof/", status: 404, text: "404: Page Not Found" },
  { path: "/debug/pprof/cmdline", status: 200, text: "nodelet\0--x=y" },
  { path: "/debug/pprof/profile?seconds=0.05", status: 200, type: "application/json", text: /"nodes":\[/ },
  { path: "/debug/pprof/profile?seconds=-1", status: 400 },
  { path: "/debug/pprof/goroutine", status: 404, text: /^Unknown profile/ },
  { path: "/flagz", status: 404, text: "404 page not found\n" },
  { path: "/statusz", status: 404, text: "404 page not found\n" },
  { path: "/logs/%00", status: 400, text: /^400 Bad Request/ },
  { path: "/logs/no-such-file-here", status: 404, text: "404 page not found\n" },
];

for (const { path, method = "GET", headers = {}, body = "", status, text, type } of cases) {
  test(`${method} ${path} ${JSON.stringify(headers)} gives ${status}`, async () => {
    const { server } = await start();
    await using _ = server;
    const answer = await server.ask(path, { method, headers, body });
    assert.equal(answer.status, status, answer.text);
    if (typeof text === "string") assert.equal(answer.text, text);
    else if (text !== undefined) assert.match(answer.text, text);
    if (type !== undefined) assert.equal(answer.headers["content-type"], type);
  });
}

test("a failed check fails /healthz with the others listed, and its own path tells why", async () => {
  const health = new HealthRegistry(systemClock);
  health.report("log", { state: "ok" });
  health.report("syncloop", { state: "failed", reason: "sync Loop took longer than expected" });
  const asked: unknown[] = [];
  const { server } = await start({}, { health, onHealthAsked: (outcomes) => asked.push(outcomes) });
  await using _ = server;
  const all = await server.ask("/healthz");
  assert.equal(all.status, 500);
  assert.match(all.text, /^\[\+\]ping ok\n\[\+\]log ok.*\n\[-\]syncloop failed.*\nhealthz check failed\n$/);
  const own = await server.ask("/healthz/syncloop");
  assert.deepEqual([own.status, own.text], [500, "internal server error: sync Loop took longer than expected\n"]);
  assert.equal((await server.ask("/healthz/log")).text, "ok");
  assert.equal((await server.ask("/healthz?exclude=syncloop")).text, "ok");
  assert.deepEqual(asked[0], [
    { name: "ping", ok: true },
    { name: "log", ok: true },
    { name: "syncloop", ok: false },
  ]);
});

for (const [settings, expected] of [
  [
    { enableDebuggingHandlers: false },
    {
      "/exec/shop/web/main": [405, "Debug endpoints are disabled.\n"],
      "/attach/x": [405, "Debug endpoints are disabled.\n"],
      "/run/": [405, "Debug endpoints are disabled.\n"],
      "/run": [301, undefined],
      "/portForward/a/b": [405, "Debug endpoints are disabled.\n"],
      "/containerLogs/a/b/c": [405, "Debug endpoints are disabled.\n"],
      "/runningpods/": [405, "Debug endpoints are disabled.\n"],
      "/debug/pprof/profile": [405, "Debug endpoints are disabled.\n"],
      "/logs/": [405, "Debug endpoints are disabled.\n"],
      "/configz": [404, "404 page not found\n"],
      "/checkpoint/a/b/c": [404, "404 page not found\n"],
      "/debug/flags/v": [404, "404 page not found\n"],
      "/pods": [200, undefined],
      "/healthz": [200, "ok"],
    },
  ],
  [
    { enableSystemLogHandler: false },
    { "/logs/": [405, "logs endpoint is disabled.\n"], "/configz": [200, undefined] },
  ],
  [{ enableProfilingHandler: false }, { "/debug/pprof/heap": [405, "profiling endpoint is disabled.\n"] }],
  [{ enableDebugFlagsHandler: false }, { "/debug/flags/v": [405, "flags endpoint is disabled.\n"] }],
  [{ checkpoint: false }, { "/checkpoint/a/b/c": [404, "404 page not found\n"] }],
  [
    { flagz: true, statusz: true },
    { "/flagz": [200, undefined], "/statusz": [200, undefined] },
  ],
] as const satisfies readonly [Partial<ApiSettings>, Record<string, [number, string | undefined]>][]) {
  test(`with ${JSON.stringify(settings)}`, async () => {
    const { server } = await start(settings);
    await using _ = server;
    for (const [path, [status, text]] of Object.entries(expected)) {
      const answer = await server.ask(path);
      assert.equal(answer.status, status, `${path}: ${answer.text}`);
      if (text !== undefined) assert.equal(answer.text, text, path);
    }
  });
}

test("flagz and statusz give nothing but text", async () => {
  const { server } = await start({ flagz: true, statusz: true }, { flags: { v: "2", address: "0.0.0.0" } });
  await using _ = server;
  assert.match((await server.ask("/flagz")).text, /\naddress=0\.0\.0\.0\nv=2\n$/);
  assert.match((await server.ask("/statusz")).text, /Binary version: v1\.34\.0\n/);
  for (const path of ["/flagz", "/statusz"]) {
    assert.equal((await server.ask(path, { headers: { Accept: "application/json" } })).status, 406);
    assert.equal((await server.ask(path, { headers: { Accept: "text/plain;charset=utf-8" } })).status, 200);
  }
});

test("the read-only port shows pods and health, and refuses whatever could change something", async () => {
  const fake = await runtimeWithWeb();
  const figures = figureMounts({ figures: new MetricRegistries(), statistics: noStatistics, log: silentLogger });
  const ports = apiPorts({ runtime: fake.runtime, views: new FakeViews(web), figures });
  await using server = await TestServer.start(readOnlyMounts(ports));
  const isShown = (pattern: string, method: string): boolean =>
    pattern.startsWith("/healthz") || (pattern === "/pods/" && method === "GET");
  const before = new Map(fake.callCounts());
  const all = nodeApiMounts({ ...allOn, flagz: true, statusz: true }, ports);
  const notThere = ["/checkpoint", "/configz", "/debug/flags", "/flagz", "/statusz"];
  for (const { pattern, path } of endpointsOf(all)) {
    const real = path
      .replace("namespace/pod", "shop/web")
      .replace("/uid", "/uid-web")
      .replace(/container$/, "main");
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      const { status } = await server.ask(`${real}?cmd=true&output=1&seconds=1`, {
        method,
        body: /^P/.test(method) ? "4" : "",
      });
      const refused = notThere.some((each) => pattern.startsWith(each)) ? 404 : 405;
      const isFigure = /^\/(metrics|stats)/.test(pattern);
      if (isFigure) assert.ok(method !== "DELETE" || status === 405, `${method} ${real}`);
      else assert.equal(status, isShown(pattern, method) ? 200 : refused, `${method} ${real}`);
    }
  }
  assert.deepEqual(new Map(fake.callCounts()), before, "the runtime was asked");
  assert.equal(ports.logVerbosity.verbosity, 2);
});

test("the read-only port says which checks fail, not why, and an empty node has no items", async () => {
  const health = new HealthRegistry(systemClock);
  health.report("runtime", { state: "failed", reason: "at /secret/path" });
  const ports = apiPorts({ runtime: (await runtimeWithWeb()).runtime, health });
  await using server = await TestServer.start(readOnlyMounts(ports));
  const { status, text } = await server.ask("/healthz");
  assert.deepEqual([status, text], [500, "[+]ping ok\n[-]runtime failed: reason withheld\nhealthz check failed\n"]);
  assert.equal(JSON.parse((await server.ask("/pods")).text).items, null);
});

test("a port in use is an error that names it", async () => {
  await using first = await TestServer.start([]);
  const dispatch = { mounts: [], gate: openGate, clock: systemClock, log: silentLogger, onRequest: () => () => {} };
  const second = new NodeServer({ host: "127.0.0.1", port: first.port }, undefined, dispatch);
  await assert.rejects(second.listen(), new RegExp(`Failed to listen and serve on 127.0.0.1:${first.port}`));
});

test("what the runtime refuses reaches the client with the code of its kind", async () => {
  for (const [code, status] of [
    ["NotFound", 404],
    ["ResourceExhausted", 429],
    ["Unknown", 500],
  ] as const) {
    const fake = await runtimeWithWeb();
    const runtime: RuntimeService = {
      ...fake.runtime,
      execSync: async () => {
        throw new CriError(code, "execSync", "no");
      },
    };
    const { server } = await start({}, { runtime });
    await using _ = server;
    const answer = await server.ask("/run/shop/web/main?cmd=true", { method: "POST" });
    assert.deepEqual([answer.status, answer.text], [status, `rpc error: code = ${code} desc = no`]);
    assert.equal(answer.headers["retry-after"], code === "ResourceExhausted" ? "60" : undefined);
  }
});

test("a handler that breaks is a 500 and a line in the log, not the end of the agent", async () => {
  const errors: unknown[] = [];
  const log = { ...silentLogger, error: (_: string, error: unknown) => errors.push(error) };
  const mounts = [
    {
      type: "path" as const,
      path: "/broken",
      handle: () => {
        throw new Error("oh no");
      },
    },
  ];
  await using server = await TestServer.start(mounts, { log });
  const answer = await server.ask("/broken");
  assert.deepEqual([answer.status, answer.text], [500, "recover from panic situation: - oh no\n"]);
  assert.equal(errors.length, 1);
});

test("a checkpoint is written where the agent keeps them, and its path is the answer", async () => {
  const fake = await runtimeWithWeb();
  const asked: { location: string; timeout: bigint }[] = [];
  const runtime: RuntimeService = {
    ...fake.runtime,
    checkpointContainer: async (request) => {
      asked.push(request);
      return {};
    },
  };
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const { server } = await start({ rootDir: "/root-dir" }, { runtime, clock });
  await using _ = server;
  const path = "/checkpoint/shop/web/main?timeout=7&timeout=300";
  const { status, text } = await server.ask(path, { method: "POST", headers: { Accept: "application/json" } });
  assert.equal(status, 200);
  const { items } = JSON.parse(text) as { items: string[] };
  assert.match(items[0] ?? "", /^\/root-dir\/checkpoints\/checkpoint-web_shop-main-2026-01-0\dT\d\d:\d4:05.*\.tar$/);
  assert.deepEqual(
    asked.map(({ location, timeout }) => [location, timeout]),
    [[items[0], 300n]],
  );
});

test("the heap is a snapshot that developer tools open", async () => {
  const { server } = await start();
  await using _ = server;
  const { status, headers, bytes } = await server.ask("/debug/pprof/heap");
  assert.deepEqual([status, headers["content-type"]], [200, "application/json"]);
  assert.match(bytes.subarray(0, 200).toString(), /^\{"snapshot":\{"meta":/);
  assert.match(bytes.subarray(-20).toString(), /\]\s*\}\s*$/);
});
