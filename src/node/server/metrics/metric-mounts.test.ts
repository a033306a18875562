import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { metricValue, parseExposition, seriesOf } from "../../../../test/support/exposition.ts";
import { settleFiles } from "../../../../test/support/fake-clock.ts";
import { MadeUpNode } from "../../../../test/support/made-up-node.ts";
import { TestServer } from "../../../../test/support/node-api.ts";
import { type Logger, silentLogger, systemClock, TaskScope } from "../../../ground/base/index.ts";
import { MetricRegistry } from "../../../ground/metrics/index.ts";
import { MetricRegistries } from "../metric-registries.ts";
import { LazyStatistics } from "../stats/lazy-statistics.ts";
import type { StatsPorts } from "../stats/ports.ts";
import { statsService } from "../stats/stats-service.ts";
import { pathLabel } from "./http-metrics.ts";
import { metricMounts } from "./metric-mounts.ts";

test("/metrics also has the figures of what runs in the same process", async () => {
  const others = new MetricRegistry();
  others.counter("of_others_total", "[ALPHA] What others count").inc({});
  const figures = new MetricRegistries(others);
  const statistics = new LazyStatistics(
    new TaskScope(),
    () => {
      throw new Error("there is no node");
    },
    () => false,
  );
  await using server = await TestServer.start(metricMounts(figures, statistics, silentLogger));
  const families = parseExposition((await server.ask("/metrics")).text);
  assert.equal(metricValue(families, "of_others_total"), 1);
});

/** Figures of a made-up node behind a real server. */
async function serve(
  node: MadeUpNode | undefined,
  log: Logger = silentLogger,
): Promise<{ figures: MetricRegistries; statistics: LazyStatistics; server: TestServer }> {
  const figures = new MetricRegistries();
  const ports = (): StatsPorts => {
    if (node === undefined) throw new Error("there is no node");
    return { ...node.statistics.ports, clock: systemClock };
  };
  const statistics = new LazyStatistics(new TaskScope(), ports, () => node !== undefined);
  const mounts = [statsService(() => statistics.get()), ...metricMounts(figures, statistics, log)];
  const onRequest = figures.http.watch("readwrite", () => systemClock.monotonic());
  return { figures, statistics, server: await TestServer.start(mounts, { onRequest, log }) };
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

test("/metrics/cadvisor: machine, pods, sandboxes and containers with the labels that dashboards join by", async () => {
  await using node = new MadeUpNode();
  const { podPath, pathOf } = node.addPod("web", ["main", "side"]);
  const { server } = await serve(node);
  await using _ = server;
  const { status, text } = await server.ask("/metrics/cadvisor");
  assert.equal(status, 200);
  const families = parseExposition(text);
  const pod = { namespace: "default", pod: "web" };
  const main = { ...pod, container: "main", name: "web-main", image: "busybox:1", id: pathOf("main") };
  for (const [name, labels, expected] of [
    ["container_cpu_usage_seconds_total", { ...main, cpu: "total" }, 10],
    ["container_cpu_user_seconds_total", main, 10],
    ["container_cpu_cfs_periods_total", main, 0],
    ["container_memory_working_set_bytes", main, 40_000_000],
    ["container_memory_usage_bytes", main, 50_000_000],
    ["container_memory_rss", main, 40_000_000],
    ["container_memory_cache", main, 10_000_000],
    ["container_memory_swap", main, 4096],
    ["container_memory_failcnt", main, 1],
    ["container_memory_failures_total", { ...main, failure_type: "pgmajfault", scope: "hierarchy" }, 1],
    ["container_oom_events_total", main, 2],
    ["container_spec_cpu_quota", main, 50_000],
    ["container_spec_cpu_period", main, 100_000],
    ["container_spec_cpu_shares", main, 81],
    ["container_spec_memory_limit_bytes", main, 90_000_000],
    ["container_start_time_seconds", main, 1_700_000_201.5],
    ["container_threads", main, 3],
    ["container_threads_max", main, 100],
    ["container_processes", main, 1],
    ["container_fs_reads_bytes_total", { ...main, device: "8:0" }, 4096],
    ["container_fs_writes_total", { ...main, device: "8:0" }, 1],
    ["container_blkio_device_usage_total", { ...main, operation: "Write", major: "8", minor: "0" }, 512],
    ["container_pressure_cpu_waiting_seconds_total", main, 3],
    ["container_pressure_io_stalled_seconds_total", main, 1],
    ["container_memory_working_set_bytes", { ...pod, container: "", name: "", image: "", id: podPath }, 40_000_000],
    ["container_network_receive_bytes_total", { ...pod, container: "", image: "pause:3", interface: "eth0" }, 100],
    ["container_network_transmit_bytes_total", { id: "/", interface: "eth0" }, 7000],
    ["container_memory_working_set_bytes", { id: "/" }, 1_500_000_000],
    ["machine_cpu_cores", { boot_id: "boot-1", machine_id: "machine-1", system_uuid: "system-1" }, 4],
    ["machine_cpu_sockets", {}, 1],
    ["machine_memory_bytes", {}, 4_096_000_000],
    ["machine_scrape_error", {}, 0],
    ["container_scrape_error", {}, 0],
    ["cadvisor_version_info", { kernelVersion: "6.1.0", osVersion: "Some OS" }, 1],
  ] as const) {
    assert.equal(metricValue(families, name, labels), expected, `${name} ${JSON.stringify(labels)}`);
  }
  for (const { labels } of [...families.values()].flatMap(({ samples }) => samples)) {
    if (!("id" in labels)) continue;
    for (const label of ["container", "image", "name", "namespace", "pod"]) assert.ok(label in labels, label);
  }
  // Containers have no network of their own, and nobody reads the machine's limit as a container's.
  assert.equal(seriesOf(families, "container_network_receive_bytes_total", { container: "main" }).length, 0);
  assert.equal(seriesOf(families, "container_spec_memory_limit_bytes", { id: "/" }).length, 0);
  const root = seriesOf(families, "container_fs_usage_bytes", { id: "/" });
  assert.ok(root.length === 1 && (root[0]?.value ?? 0) > 0);
});

test("many scrapers at once look into the cgroups once", async () => {
  await using node = new MadeUpNode();
  for (let index = 0; index < 10; index++) node.addPod(`pod-${index}`);
  let goOn = (): void => {};
  node.imageKnown = new Promise((resolve) => {
    goOn = resolve;
  });
  const { figures, statistics, server } = await serve(node);
  await using _ = server;
  // What is loaded on first use is there already, so that all of them get as far as the look itself.
  await Promise.all([statistics.get(), import("./cadvisor-metrics.ts"), import("./cadvisor-rows.ts")]);
  const { cgroups } = node.statistics.ports;
  const look = cgroups.details.bind(cgroups);
  const looks: string[] = [];
  cgroups.details = (path) => {
    looks.push(path);
    return look(path);
  };
  const scrapes = Array.from({ length: 20 }, () => server.ask("/metrics/cadvisor"));
  const waiting = { path: "metrics/cadvisor" };
  const isComplete = async (): Promise<boolean> => {
    const [inFlight] = seriesOf(parseExposition(await figures.main.text()), "kubelet_http_inflight_requests", waiting);
    return inFlight?.value === scrapes.length;
  };
  while (!(await isComplete())) await settleFiles();
  await settleFiles();
  goOn();
  for (const { text } of await Promise.all(scrapes)) {
    assert.equal(seriesOf(parseExposition(text), "container_memory_rss", { container: "main" }).length, 10);
  }
  assert.ok(looks.length > 30);
  assert.equal(new Set(looks).size, looks.length, "some cgroup was looked into twice");
});

test("figures without pressure where the kernel has none or the gate is off", async () => {
  await using node = new MadeUpNode({ pressure: false });
  node.addPod("web");
  const { server } = await serve(node);
  await using _ = server;
  const families = parseExposition((await server.ask("/metrics/cadvisor")).text);
  assert.deepEqual(
    [...families.keys()].filter((name) => name.includes("pressure")),
    [],
  );
});

test("an agent that lives in the top cgroup is told of once", async () => {
  await using node = new MadeUpNode({ systemCgroups: { kubelet: "/", runtime: "/", misc: undefined } });
  const { server } = await serve(node);
  await using _ = server;
  const families = parseExposition((await server.ask("/metrics/cadvisor")).text);
  assert.equal(seriesOf(families, "container_memory_usage_bytes", { id: "/" }).length, 1);
});

test("/metrics tells of claims once, and of logs", async () => {
  await using node = new MadeUpNode();
  const pods = [node.addPod("one"), node.addPod("two")];
  const usage = { capacityBytes: 10n, availableBytes: 6n, usedBytes: 4n, inodes: 9n, inodesFree: 2n, inodesUsed: 7n };
  const claim = { namespace: "default", name: "shared" };
  for (const { uid } of pods) node.volumes.set(uid, [{ name: "v", usage, claim, isLocalEphemeral: false }]);
  const { server } = await serve(node);
  await using _ = server;
  const families = parseExposition((await server.ask("/metrics")).text);
  const labels = { namespace: "default", persistentvolumeclaim: "shared" };
  assert.equal(metricValue(families, "kubelet_volume_stats_used_bytes", labels), 4);
  assert.equal(metricValue(families, "kubelet_volume_stats_inodes_used", labels), 7);
  const log = { container: "main", namespace: "default", pod: "one", uid: "uid-one" };
  assert.equal(metricValue(families, "kubelet_container_log_filesystem_used_bytes", log), 8192);
});

test("a client that leaves in the middle is nobody's failure, and the next one gets all of it", async () => {
  await using node = new MadeUpNode();
  for (let index = 0; index < 60; index++) node.addPod(`pod-${index}`, ["main", "side"]);
  const failures: unknown[] = [];
  const log = { ...silentLogger, error: (_: string, error: unknown) => void failures.push(error) };
  const { server } = await serve(node, log);
  await using _ = server;
  for (const headers of [{}, { "accept-encoding": "gzip" }]) {
    for (let round = 0; round < 3; round++) {
      const sent = request({ host: "127.0.0.1", port: server.port, path: "/metrics/cadvisor", headers, agent: false });
      sent.end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      await once(response, "data");
      response.destroy();
    }
  }
  const { text } = await server.ask("/metrics/cadvisor");
  assert.equal(seriesOf(parseExposition(text), "container_memory_rss", { container: "side" }).length, 60);
  assert.deepEqual(failures, []);
});

test("without a runtime there is an error to count, and no figures", async () => {
  const { server } = await serve(undefined);
  await using _ = server;
  const families = parseExposition((await server.ask("/metrics/resource")).text);
  assert.deepEqual([...families.keys()], ["resource_scrape_error"]);
  assert.equal(metricValue(families, "resource_scrape_error"), 1);
  const cadvisor = parseExposition((await server.ask("/metrics/cadvisor")).text);
  assert.deepEqual([...cadvisor.keys()], ["container_scrape_error", "machine_scrape_error"]);
  assert.equal(metricValue(cadvisor, "container_scrape_error"), 1);
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
