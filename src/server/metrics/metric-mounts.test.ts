import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { metricValue, parseExposition, seriesOf } from "../../../test/support/exposition.ts";
import { MadeUpNode } from "../../../test/support/made-up-node.ts";
import { TestServer } from "../../../test/support/node-api.ts";
import { silentLogger, systemClock, TaskScope } from "../../base/index.ts";
import { Figures } from "../figures.ts";
import { statsService } from "../stats/stats-service.ts";
import { pathLabel } from "./http-metrics.ts";
import { metricMounts } from "./metric-mounts.ts";

/** Figures of a made-up node behind a real server. */
async function serve(node: MadeUpNode | undefined): Promise<{ figures: Figures; server: TestServer }> {
  const figures = new Figures();
  if (node !== undefined) figures.attach({ ...node.statistics.ports, clock: systemClock }, new TaskScope());
  const mounts = [statsService(() => figures.statistics()), ...metricMounts(figures, silentLogger)];
  const onRequest = figures.http.watch("readwrite", () => systemClock.monotonic());
  return { figures, server: await TestServer.start(mounts, { onRequest }) };
}

test("/metrics/resource has what metrics-server reads, with the time of each sample", async () => {
  await using node = new MadeUpNode();
  node.addPod("web", ["main", "side"]);
  const { server } = await serve(node);
  await using _ = server;
  const before = Date.now();
  const { status, headers, text } = await server.ask("/metrics/resource");
  assert.equal(status, 200);
  assert.match(headers["content-type"] ?? "", /^text\/plain; version=0\.0\.4/);
  const families = parseExposition(text);
  assert.equal(metricValue(families, "node_cpu_usage_seconds_total"), 1000);
  assert.equal(metricValue(families, "node_memory_working_set_bytes"), 1_500_000_000);
  assert.equal(metricValue(families, "node_swap_usage_bytes"), 614_400);
  const labels = { container: "main", namespace: "default", pod: "web" };
  assert.equal(metricValue(families, "container_cpu_usage_seconds_total", labels), 10);
  assert.equal(metricValue(families, "container_memory_working_set_bytes", labels), 40_000_000);
  assert.equal(metricValue(families, "container_swap_limit_bytes", labels), 8192);
  assert.equal(metricValue(families, "container_start_time_seconds", labels), 1_700_000_201.5);
  assert.equal(metricValue(families, "pod_memory_working_set_bytes", { namespace: "default", pod: "web" }), 40_000_000);
  assert.equal(metricValue(families, "resource_scrape_error"), 0);
  // Older readers look for the labels in this order.
  assert.match(
    text,
    /^container_cpu_usage_seconds_total\{container="main",namespace="default",pod="web"\} 10 \d{13}$/m,
  );
  for (const name of ["node_cpu_usage_seconds_total", "container_memory_working_set_bytes", "pod_swap_usage_bytes"]) {
    for (const { at } of seriesOf(families, name)) assert.ok(at !== undefined && at >= before - 1000, name);
  }
  assert.equal(seriesOf(families, "container_start_time_seconds")[0]?.at, undefined);
  assert.match(families.get("node_cpu_usage_seconds_total")?.help ?? "", /^\[STABLE\] /);
});

test("without a runtime there is an error to count, and no figures", async () => {
  const { server } = await serve(undefined);
  await using _ = server;
  const families = parseExposition((await server.ask("/metrics/resource")).text);
  assert.deepEqual([...families.keys()], ["resource_scrape_error"]);
  assert.equal(metricValue(families, "resource_scrape_error"), 1);
  const summary = await server.ask("/stats/summary");
  assert.deepEqual(
    [summary.status, summary.text],
    [500, "Internal Error: the agent has not reached the container runtime yet"],
  );
});

test("/stats/summary: GET and POST, the short form only for one exact word", async () => {
  await using node = new MadeUpNode();
  node.addPod("web");
  const { server } = await serve(node);
  await using _ = server;
  for (const [path, method, isShort] of [
    ["/stats/summary", "GET", false],
    ["/stats/summary/", "POST", false],
    ["/stats/summary?only_cpu_and_memory=true", "GET", true],
    ["/stats/summary?only_cpu_and_memory=1", "GET", false],
    ["/stats/summary?only_cpu_and_memory=true&only_cpu_and_memory=true", "GET", false],
  ] as const) {
    const { status, headers, text } = await server.ask(path, { method });
    assert.equal(status, 200, path);
    assert.equal(headers["content-type"], "application/json");
    assert.equal("fs" in (JSON.parse(text) as { node: object }).node, !isShort, path);
  }
  assert.equal((await server.ask("/stats/summary", { method: "PUT" })).status, 405);
  assert.equal((await server.ask("/stats/container")).status, 404);
});

test("answers are packed for who can unpack them", async () => {
  await using node = new MadeUpNode();
  for (let index = 0; index < 50; index++) node.addPod(`pod-${index}`);
  const { server } = await serve(node);
  await using _ = server;
  const plain = await server.ask("/metrics/resource");
  const packed = await server.ask("/metrics/resource", { headers: { "accept-encoding": "deflate, gzip;q=0.9" } });
  assert.equal(packed.headers["content-encoding"], "gzip");
  assert.ok(packed.bytes.length * 3 < plain.bytes.length);
  assert.equal(parseExposition(gunzipSync(packed.bytes).toString()).size, parseExposition(plain.text).size);
});

test("/metrics/slis counts how often health was asked for and what it said; DELETE starts anew", async () => {
  const { figures, server } = await serve(undefined);
  await using _ = server;
  figures.onHealthAsked([
    { name: "ping", ok: true },
    { name: "syncloop", ok: false },
  ]);
  figures.onHealthAsked([{ name: "syncloop", ok: true }]);
  const families = parseExposition((await server.ask("/metrics/slis")).text);
  const labels = { name: "syncloop", type: "healthz" };
  assert.equal(metricValue(families, "kubernetes_healthcheck", labels), 1);
  assert.equal(metricValue(families, "kubernetes_healthchecks_total", { ...labels, status: "error" }), 1);
  assert.equal(metricValue(families, "kubernetes_healthchecks_total", { ...labels, status: "success" }), 1);
  assert.equal((await server.ask("/metrics/slis", { method: "DELETE" })).text, "metrics reset\n");
  assert.equal((await server.ask("/metrics/slis")).text, "");
});

test("requests are counted by what they ask for; made-up paths and methods are one", async () => {
  const { server } = await serve(undefined);
  await using _ = server;
  for (let index = 0; index < 200; index++) await server.ask(`/no-such-${index}/x`);
  await server.ask("/metrics/slis", { method: "PROPFIND" });
  const families = parseExposition((await server.ask("/metrics")).text);
  const other = { method: "GET", path: "other", server_type: "readwrite", long_running: "false" };
  assert.equal(metricValue(families, "kubelet_http_requests_total", other), 200);
  assert.equal(metricValue(families, "kubelet_http_requests_duration_seconds_count", other), 200);
  assert.equal(metricValue(families, "kubelet_http_inflight_requests", other), 0);
  assert.equal(
    metricValue(families, "kubelet_http_requests_total", { ...other, method: "other", path: "metrics/slis" }),
    1,
  );
  assert.equal(seriesOf(families, "kubelet_http_requests_total").length, 3);
});

for (const [path, expected] of [
  ["/", "other"],
  ["/pods", "pods"],
  ["/pods/", "pods"],
  ["/metrics", "metrics"],
  ["/metrics/cadvisor", "metrics/cadvisor"],
  ["/metrics/none", "metrics"],
  ["/exec/ns/pod/c", "exec"],
  ["/portForward/ns/pod", "portForward"],
  ["/debug/pprof/heap", "debug"],
  ["/stats/summary", "stats"],
  ["/../x", "other"],
] as const) {
  test(`the label of ${path}`, () => assert.equal(pathLabel(path), expected));
}
