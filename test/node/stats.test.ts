import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import type { ContainerStats, Summary } from "../../src/node/server/stats/summary-types.ts";
import { eventually } from "../support/agent.ts";
import { metricValue, parseExposition, seriesOf, shrunkCounters } from "../support/exposition.ts";
import { freePort } from "../support/free-port.ts";
import { TestNode } from "../support/test-node.ts";

const mebibyte = 1024 * 1024;
const pod = "load-test-node";

describe("statistics and metrics of a real node", { timeout: 200_000 }, () => {
  let node: TestNode;
  let port: number;

  before(async () => {
    port = await freePort();
    node = await TestNode.start({
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: "AlwaysAllow" },
      port,
    });
    await node.agent.apply("load", {
      containers: [
        node.shell("burn", "while :; do :; done", { resources: { limits: { cpu: "200m" } } }),
        node.shell("fill", "dd if=/dev/zero of=/dev/shm/big bs=1M count=40 2>/dev/null; sleep 1d"),
        node.shell("write", "dd if=/dev/zero of=/big bs=1M count=20 2>/dev/null; seq 1 20000; sleep 1d"),
      ],
    });
    await node.agent.until("load", "it runs", ({ status }) => status?.phase === "Running");
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  const ask = async (path: string): Promise<string> => {
    const sent = request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const body = await text(response);
    assert.equal(response.statusCode, 200, body);
    return body;
  };
  const summary = async (query = ""): Promise<Summary> => JSON.parse(await ask(`/stats/summary${query}`)) as Summary;
  const containerOf = ({ pods }: Summary, name: string): ContainerStats | undefined =>
    pods?.find(({ podRef }) => podRef.name === pod)?.containers.find((container) => container.name === name);

  test("a container that works, one that fills memory and one that writes are seen to", async () => {
    const seen = await eventually(
      async () => {
        const found = await summary();
        const [fill, write] = [containerOf(found, "fill"), containerOf(found, "write")];
        const isFull = (fill?.memory?.workingSetBytes ?? 0) > 40 * mebibyte;
        // The runtime looks at what containers have written every ten seconds.
        const isWritten = (write?.rootfs?.usedBytes ?? 0) > 20 * mebibyte && (write?.logs?.usedBytes ?? 0) > 500_000;
        return isFull && isWritten ? found : undefined;
      },
      "what was filled and written shows",
      60_000,
    );
    const burn = containerOf(seen, "burn");
    const fill = containerOf(seen, "fill");
    const found = seen.pods?.find(({ podRef }) => podRef.name === pod);
    assert.ok((burn?.cpu?.usageNanoCores ?? 0) > 0.02e9, JSON.stringify(burn?.cpu));
    assert.ok((burn?.cpu?.usageNanoCores ?? 0) < 0.4e9, "a limit of 200 millicores");
    assert.ok((fill?.memory?.workingSetBytes ?? 0) < 60 * mebibyte);
    assert.ok((burn?.memory?.workingSetBytes ?? mebibyte * 100) < 20 * mebibyte);
    assert.ok((found?.memory?.usageBytes ?? 0) >= (fill?.memory?.usageBytes ?? 0));
    assert.ok((found?.["ephemeral-storage"]?.usedBytes ?? 0) > 20 * mebibyte);
    assert.ok((found?.process_stats?.process_count ?? 0) >= 3);
    assert.ok(found?.network?.interfaces.some(({ name }) => name === "eth0"));
    assert.ok((seen.node.cpu?.usageCoreNanoSeconds ?? 0) > (found?.cpu?.usageCoreNanoSeconds ?? 0));
    assert.ok((seen.node.runtime?.imageFs?.usedBytes ?? 0) > 0);
    assert.ok((seen.node.rlimit?.curproc ?? 0) > 1);
  });

  test("the rate is what the counter grew by, and metrics tell the same", async () => {
    const labels = { container: "burn", namespace: "default", pod };
    const scrape = async () => parseExposition(await ask("/metrics/resource"));
    const first = await scrape();
    const before = metricValue(first, "container_cpu_usage_seconds_total", labels);
    const second = await eventually(
      async () => {
        const next = await scrape();
        return metricValue(next, "container_cpu_usage_seconds_total", labels) > before + 0.2 ? next : undefined;
      },
      "the counter grows",
      60_000,
    );
    assert.deepEqual(shrunkCounters(first, second), []);
    const sampleOf = (families: typeof first) =>
      families.get("container_cpu_usage_seconds_total")?.samples.find((each) => each.labels["container"] === "burn");
    const elapsed = ((sampleOf(second)?.at ?? 0) - (sampleOf(first)?.at ?? 0)) / 1000;
    const cores = ((sampleOf(second)?.value ?? 0) - (sampleOf(first)?.value ?? 0)) / elapsed;
    assert.ok(cores > 0.02 && cores < 0.35, `${cores} cores`);
    const fill = metricValue(second, "container_memory_working_set_bytes", { ...labels, container: "fill" });
    assert.ok(fill > 40 * mebibyte && fill < 60 * mebibyte);
    const started = metricValue(second, "container_start_time_seconds", labels) * 1000;
    assert.ok(started < systemClock.now() && started > systemClock.now() - 600_000);
    assert.ok(metricValue(second, "node_memory_working_set_bytes") > fill);
    assert.equal(metricValue(second, "resource_scrape_error"), 0);
  });

  test("asking for processor and memory alone is shorter", async () => {
    const short = await summary("?only_cpu_and_memory=true");
    assert.equal(short.node.fs, undefined);
    assert.ok((containerOf(short, "fill")?.memory?.workingSetBytes ?? 0) > 40 * mebibyte);
    assert.equal(containerOf(short, "fill")?.logs, undefined);
  });

  for (const path of ["/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/metrics/slis"]) {
    test(`${path} is well-formed, and its counters only grow`, async () => {
      await ask("/healthz");
      const first = parseExposition(await ask(path));
      await ask("/healthz");
      const second = parseExposition(await ask(path));
      assert.ok(first.size > 0);
      assert.deepEqual(shrunkCounters(first, second), []);
    });
  }

  test("/metrics/cadvisor shows the same containers by the names that dashboards know", async () => {
    const families = parseExposition(await ask("/metrics/cadvisor"));
    const labels = { namespace: "default", pod };
    const burn = { ...labels, container: "burn" };
    assert.ok(metricValue(families, "container_cpu_usage_seconds_total", burn) > 0);
    assert.equal(metricValue(families, "container_spec_cpu_quota", burn), 20_000);
    assert.ok(metricValue(families, "container_cpu_cfs_throttled_periods_total", burn) > 0);
    const fill = metricValue(families, "container_memory_working_set_bytes", { ...labels, container: "fill" });
    assert.ok(fill > 40 * mebibyte && fill < 60 * mebibyte);
    assert.ok(metricValue(families, "container_threads", burn) >= 1);
    assert.ok(metricValue(families, "container_file_descriptors", burn) >= 1);
    assert.ok(metricValue(families, "container_network_receive_bytes_total", { ...labels, interface: "eth0" }) >= 0);
    assert.ok(metricValue(families, "machine_memory_bytes") > fill);
    const [sample] = seriesOf(families, "container_memory_rss", burn);
    assert.match(sample?.labels["image"] ?? "", /busybox/);
    assert.match(sample?.labels["id"] ?? "", /kubepods.*pod/);
    assert.match(sample?.labels["name"] ?? "", /^[0-9a-f]{64}$/);
  });

  test("what the agent did for the pod is counted", async () => {
    const families = parseExposition(await ask("/metrics"));
    for (const [name, labels, least] of [
      ["kubelet_started_pods_total", {}, 1],
      ["kubelet_started_containers_total", { container_type: "container" }, 3],
      ["kubelet_running_containers", { container_state: "running" }, 3],
      ["kubelet_desired_pods", { static: "true" }, 1],
      ["kubelet_runtime_operations_total", { operation_type: "run_podsandbox" }, 1],
      ["kubelet_runtime_operations_duration_seconds_count", { operation_type: "start_container" }, 3],
      ["kubelet_pod_start_duration_seconds_count", {}, 1],
      ["kubelet_cgroup_manager_duration_seconds_count", { operation_type: "create" }, 1],
      ["kubelet_container_log_filesystem_used_bytes", { container: "write", namespace: "default", pod }, 500_000],
      ["kubelet_http_requests_total", { method: "GET", path: "stats", server_type: "readwrite" }, 1],
      ["nodelet_pod_step_duration_seconds_count", { step: "sandbox", outcome: "ok" }, 1],
      ["nodelet_event_loop_delay_seconds_count", {}, 1],
      ["process_resident_memory_bytes", {}, 20 * mebibyte],
    ] as const) {
      const value = metricValue(families, name, labels);
      assert.ok(value >= least, `${name} ${JSON.stringify(labels)} is ${value}`);
    }
  });
});
