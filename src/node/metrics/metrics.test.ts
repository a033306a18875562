import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { metricValue, parseExposition, seriesOf, shrunkCounters } from "../../../test/support/exposition.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { enginePod, TestEngine } from "../../../test/support/test-engine.ts";
import { ApiError } from "../../connections/kube/index.ts";
import type { LedgerEntry } from "../../ground/base/index.ts";
import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { Node, PodUid } from "../../ground/model/index.ts";
import { HealthRegistry, MetricRegistries, type Reviews } from "../server/index.ts";
import { sizeLabel } from "./image-metrics.ts";
import { AgentMetrics, showClientCertificate, showRollout, showServingCertificate } from "./index.ts";
import { measuredClock } from "./measured-clock.ts";
import { pullMs } from "./pull-time.ts";

const never = new AbortController().signal;

async function scrape(registry: MetricRegistry) {
  return parseExposition(await registry.text());
}

describe("a node's life in its metrics", () => {
  test("pods that come, run, are refused and go", async () => {
    await using engine = await TestEngine.start({
      source: "api",
      handlers: [
        (pod) =>
          pod.metadata.name === "unwelcome"
            ? { type: "rejected", reason: "NodeAffinity", message: "no" }
            : { type: "admitted" },
      ],
    });
    const containers = ["one", "two"].map((name) => ({ name, image: "busybox:1" }));
    const creationTimestamp = new Date(engine.clock.now()).toISOString();
    await engine.want(enginePod("a", { containers }, { creationTimestamp }), enginePod("unwelcome"));
    await engine.until("it runs", () => engine.phase("a") === "Running");
    const before = await scrape(engine.figures.main);
    for (const [name, labels, expected] of [
      ["kubelet_started_pods_total", {}, 1],
      ["kubelet_started_pods_errors_total", {}, 0],
      ["kubelet_started_containers_total", { container_type: "container" }, 2],
      ["kubelet_run_podsandbox_duration_seconds_count", { runtime_handler: "" }, 1],
      ["kubelet_running_pods", {}, 1],
      ["kubelet_running_containers", { container_state: "running" }, 2],
      ["kubelet_running_containers", { container_state: "exited" }, 0],
      ["kubelet_desired_pods", { static: "" }, 2],
      ["kubelet_desired_pods", { static: "true" }, 0],
      ["kubelet_active_pods", { static: "" }, 1],
      ["kubelet_working_pods", { lifecycle: "sync", config: "desired", static: "" }, 1],
      ["kubelet_working_pods", { lifecycle: "terminating", config: "runtime_only", static: "unknown" }, 0],
      ["kubelet_admission_rejections_total", { reason: "NodeAffinity" }, 1],
      ["kubelet_containers_per_pod_count_sum", {}, 2],
      ["kubelet_pod_start_duration_seconds_count", {}, 1],
      ["kubelet_pod_start_total_duration_seconds_count", {}, 1],
      ["kubelet_pod_start_sli_duration_seconds_count", {}, 1],
      ["kubelet_pod_worker_duration_seconds_count", { operation_type: "create" }, 1],
      ["kubelet_cgroup_manager_duration_seconds_count", { operation_type: "create" }, 1],
      ["nodelet_pod_step_duration_seconds_count", { step: "start", outcome: "ok" }, 2],
    ] as const) {
      assert.equal(metricValue(before, name, labels), expected, `${name} ${JSON.stringify(labels)}`);
    }
    assert.ok(metricValue(before, "kubelet_pleg_relist_duration_seconds_count") >= 1);
    assert.ok(metricValue(before, "kubelet_pleg_last_seen_seconds") > 1_700_000_000);

    await engine.drop("a");
    await engine.until("it is gone", () => engine.running().length === 0);
    const after = await scrape(engine.figures.main);
    assert.deepEqual(shrunkCounters(before, after), []);
    assert.equal(metricValue(after, "kubelet_desired_pods", { static: "" }), 1);
    assert.ok(metricValue(after, "kubelet_pod_worker_duration_seconds_count", { operation_type: "kill" }) >= 1);
  });

  test("a container that can't be started counts with the reason its pod shows", async () => {
    await using engine = await TestEngine.start({ runtime: { unknownImages: "absent" } });
    await engine.want(enginePod("bad", { containers: [{ name: "main", image: "nowhere:1" }] }));
    await engine.advance(1_000);
    const families = await scrape(engine.figures.main);
    const labels = { container_type: "container", code: "ErrImagePull" };
    assert.ok(metricValue(families, "kubelet_started_containers_errors_total", labels) >= 1);
    assert.equal(metricValue(families, "kubelet_pod_start_duration_seconds_count"), 0);
  });

  test("pods that ran before the agent came have not started now", async () => {
    await using engine = await TestEngine.start();
    await engine.want(enginePod("old"));
    await engine.until("it runs", () => engine.phase("old") === "Running");
    await engine.restart();
    await engine.until("it is known to run", () => engine.phase("old") === "Running");
    const families = await scrape(engine.figures.main);
    assert.equal(metricValue(families, "kubelet_pod_start_duration_seconds_count"), 0);
    assert.equal(metricValue(families, "kubelet_started_pods_total"), 0);
    assert.equal(metricValue(families, "kubelet_running_pods"), 1);
    assert.equal(metricValue(families, "kubelet_active_pods", { static: "true" }), 1);
  });

  test("a pod of an earlier life that nobody wants any more is counted as an orphan", async () => {
    await using engine = await TestEngine.start();
    await engine.want(enginePod("left"));
    await engine.until("it runs", () => engine.phase("left") === "Running");
    engine.forget("left");
    await engine.restart();
    await engine.until("it is stopped", () => engine.running().length === 0);
    assert.equal(metricValue(await scrape(engine.figures.main), "kubelet_orphaned_runtime_pods_total"), 1);
  });
});

function madeUp(): { readonly figures: MetricRegistries; readonly clock: FakeClock; readonly metrics: AgentMetrics } {
  const figures = new MetricRegistries();
  const clock = new FakeClock(Date.now());
  return { figures, clock, metrics: new AgentMetrics(figures, clock) };
}

test("calls of the runtime by their kind; what we gave up ourselves is no error", async () => {
  const { figures, metrics } = madeUp();
  const report = { operation: "listContainers", operationType: "list_containers", durationMs: 20 } as const;
  metrics.runtime.onCall({ ...report, error: undefined, cancelled: false });
  metrics.runtime.onCall({ ...report, error: new Error("no"), cancelled: false });
  metrics.runtime.onCall({ ...report, error: new Error("stop"), cancelled: true });
  const families = await scrape(figures.main);
  const labels = { operation_type: "list_containers" };
  assert.equal(metricValue(families, "kubelet_runtime_operations_total", labels), 3);
  assert.equal(metricValue(families, "kubelet_runtime_operations_errors_total", labels), 1);
  assert.equal(
    metricValue(families, "kubelet_runtime_operations_duration_seconds_bucket", { ...labels, le: "0.03125" }),
    3,
  );
});

test("probes, and nothing of a pod that is gone", async () => {
  const { figures, metrics } = madeUp();
  const probe = (uid: string, result: "successful" | "failed"): void =>
    metrics.probes.onProbe({
      uid: uid as PodUid,
      namespace: "ns",
      pod: `pod-${uid}`,
      container: "main",
      kind: "readiness",
      result,
      durationMs: 5,
      lateMs: 0,
    });
  probe("a", "successful");
  probe("a", "successful");
  probe("a", "failed");
  probe("b", "failed");
  const before = await scrape(figures.probes);
  const labels = { probe_type: "Readiness", container: "main", pod: "pod-a", namespace: "ns" };
  assert.equal(metricValue(before, "prober_probe_total", { ...labels, result: "successful", pod_uid: "a" }), 2);
  assert.equal(metricValue(before, "prober_probe_duration_seconds_count", labels), 3);
  assert.ok(metricValue(before, "process_start_time_seconds") > 0);
  metrics.probes.forget("a");
  const after = await scrape(figures.probes);
  assert.deepEqual(
    seriesOf(after, "prober_probe_total").map((sample) => sample.labels["pod_uid"]),
    ["b"],
  );
  assert.equal(seriesOf(after, "prober_probe_duration_seconds_count").length, 1);
});

for (const [bytes, label] of [
  [0n, "0-10MB"],
  [10n * 1024n ** 2n, "0-10MB"],
  [11n * 1024n ** 2n, "10MB-100MB"],
  [400n * 1024n ** 2n, "100MB-500MB"],
  [1024n ** 3n, "500MB-1GB"],
  [5n * 1024n ** 3n, "1GB-10GB"],
  [50n * 1024n ** 3n, "10GB-100GB"],
  [500n * 1024n ** 3n, "GT100GB"],
] as const) {
  test(`an image of ${bytes} bytes is ${label}`, () => assert.equal(sizeLabel(bytes), label));
}

test("images pulled and removed, providers that fail", async () => {
  const { figures, metrics } = madeUp();
  metrics.images.onPull({ outcome: "pulled", durationMs: 4_000, sizeBytes: 1n });
  metrics.images.onPull({ outcome: "failed", durationMs: 4_000, sizeBytes: 0n });
  metrics.images.onRemoved({ reason: "age" });
  metrics.images.onPlugin({ plugin: "p", durationMs: 100, failed: true });
  const families = await scrape(figures.main);
  assert.equal(
    metricValue(families, "kubelet_image_pull_duration_seconds_count", { image_size_in_bytes: "0-10MB" }),
    1,
  );
  assert.equal(metricValue(families, "kubelet_image_garbage_collected_total", { reason: "age" }), 1);
  assert.equal(metricValue(families, "kubelet_credential_provider_plugin_errors_total", { plugin_name: "p" }), 1);
});

test("volumes that are made, wanted and there; evictions; hooks", async () => {
  const { figures, metrics } = madeUp();
  const mount = { plugin: "kubernetes.io/csi", form: "filesystem", durationMs: 700 } as const;
  metrics.volumes.onMount({ ...mount, failed: false });
  metrics.volumes.onMount({ ...mount, form: "block", failed: true });
  metrics.volumes.onContent({ plugin: "kubernetes.io/configmap", delayMs: 40 });
  metrics.volumes.onSweep({ removed: ["a" as PodUid, "b" as PodUid], problems: [] });
  metrics.volumes.show({
    kinds: () => [
      { plugin: "kubernetes.io/csi", isMounted: true },
      { plugin: "kubernetes.io/csi", isMounted: false },
    ],
  });
  metrics.pods.onEvicted("emptydirfs.limit");
  metrics.pods.onHook("plain HTTP");
  metrics.pods.rejected("Whatever somebody made up");
  const families = await scrape(figures.main);
  const operation = { volume_plugin: "kubernetes.io/csi", migrated: "false" };
  for (const [name, labels, expected] of [
    [
      "storage_operation_duration_seconds_count",
      { ...operation, operation_name: "volume_mount", status: "success" },
      1,
    ],
    [
      "storage_operation_duration_seconds_count",
      { ...operation, operation_name: "map_volume", status: "fail-unknown" },
      1,
    ],
    ["nodelet_volume_content_delay_seconds_count", { plugin: "kubernetes.io/configmap" }, 1],
    ["kubelet_orphan_pod_cleaned_volumes", {}, 2],
    ["kubelet_orphan_pod_cleaned_volumes_errors", {}, 0],
    ["volume_manager_total_volumes", { plugin_name: "kubernetes.io/csi", state: "desired_state_of_world" }, 2],
    ["volume_manager_total_volumes", { plugin_name: "kubernetes.io/csi", state: "actual_state_of_world" }, 1],
    ["kubelet_evictions", { eviction_signal: "emptydirfs.limit" }, 1],
    ["kubelet_lifecycle_handler_http_fallbacks_total", {}, 1],
    ["kubelet_sleep_action_terminated_early_total", {}, 0],
    ["kubelet_admission_rejections_total", { reason: "Other" }, 1],
  ] as const) {
    assert.equal(metricValue(families, name, labels), expected, name);
  }
});

test("requests to the API server and reviews by how they ended", async () => {
  const { figures, metrics, clock } = madeUp();
  const onRequest = metrics.kube.watch("api:6443");
  onRequest({ method: "GET", status: 200, durationMs: 30 });
  onRequest({ method: "GET", status: undefined, durationMs: 30 });
  let failure: Error | undefined;
  const answer = async <Answer>(value: Answer): Promise<Answer> => {
    if (failure !== undefined) throw failure;
    return value;
  };
  const inner: Reviews = {
    token: () => answer({}),
    access: () => answer({ allowed: true }),
    isTransient: () => false,
  };
  const reviews = metrics.kube.reviews(inner, clock);
  await reviews.token("t", never);
  failure = new ApiError({ request: "POST x", code: 403, reason: "Forbidden", message: "no" });
  await assert.rejects(reviews.access({ user: "u" }, never), ApiError);
  const families = await scrape(figures.main);
  assert.equal(
    metricValue(families, "rest_client_requests_total", { code: "200", method: "GET", host: "api:6443" }),
    1,
  );
  assert.equal(metricValue(families, "rest_client_requests_total", { code: "<error>" }), 1);
  assert.equal(metricValue(families, "rest_client_request_duration_seconds_count", { verb: "GET" }), 2);
  assert.equal(metricValue(families, "apiserver_delegated_authn_request_total", { code: "201" }), 1);
  assert.equal(metricValue(families, "apiserver_delegated_authz_request_total", { code: "403" }), 1);
});

test("timers that fire late tell of an event loop that was busy", async () => {
  const inner = new FakeClock();
  const late: number[] = [];
  const clock = measuredClock(inner, (ms) => void late.push(ms));
  clock.after(100, () => {});
  const slept = clock.sleep(50, never);
  await inner.advance(200);
  await slept;
  clock.after(1_000, () => {}).cancel();
  await inner.advance(2_000);
  assert.deepEqual(late, [0, 0]);
  assert.equal(clock.now(), inner.now());
});

test("the agent's own process, and how long ago parts showed that they work", async () => {
  const { figures, metrics, clock } = madeUp();
  const health = new HealthRegistry(clock);
  metrics.showHealth(health);
  health.report("api", { state: "ok" });
  health.watch("runtime", () => ({ state: "waiting", reason: "not there" }));
  await clock.advance(7_000);
  const families = await scrape(figures.main);
  assert.equal(metricValue(families, "nodelet_health_proof_age_seconds", { name: "api" }), 7);
  assert.equal(metricValue(families, "nodelet_health_ok", { name: "api" }), 1);
  assert.equal(metricValue(families, "nodelet_health_ok", { name: "runtime" }), 0);
  assert.ok(metricValue(families, "process_resident_memory_bytes") > 10_000_000);
  assert.ok(metricValue(families, "process_cpu_seconds_total") > 0);
  assert.ok(metricValue(families, "process_open_fds") > 3);
  assert.ok(metricValue(families, "nodelet_event_loop_active_seconds_total") > 0);
  assert.ok(metricValue(families, "nodelet_wakeups_total") >= 0);
});

test("what the doctor found last, and when; nothing before he looked", async () => {
  const { figures, metrics } = madeUp();
  assert.doesNotMatch(await figures.main.text(), /^nodelet_doctor/m);
  metrics.doctor.examined({ atMs: 5_000, counts: new Map([["fail", 9]]) });
  metrics.doctor.examined({
    atMs: 7_000,
    counts: new Map([
      ["fail", 2],
      ["n/a", 31],
    ]),
  });
  const families = await scrape(figures.main);
  assert.equal(metricValue(families, "nodelet_doctor_findings", { state: "fail" }), 2);
  assert.equal(metricValue(families, "nodelet_doctor_findings", { state: "n/a" }), 31);
  assert.equal(metricValue(families, "nodelet_doctor_last_examination_timestamp_seconds"), 7);
});

test("certificates: how long they are good, and how often renewing failed", async () => {
  const { figures } = madeUp();
  const listeners: ((age: number) => void)[] = [];
  const certificate = {
    ttlSeconds: () => Number.POSITIVE_INFINITY,
    renewErrors: 2,
    state: { kept: undefined, askingSince: undefined, failures: 0 },
    onRotated: (listener: (age: number) => void) => {
      listeners.push(listener);
      return () => {};
    },
  };
  showClientCertificate(figures.main, { ...certificate, ttlSeconds: () => 3_600 });
  showServingCertificate(figures.main, certificate);
  for (const listener of listeners) listener(86_400);
  const families = await scrape(figures.main);
  assert.equal(metricValue(families, "kubelet_certificate_manager_client_ttl_seconds"), 3_600);
  assert.equal(metricValue(families, "certificate_manager_client_expiration_renew_errors"), 2);
  assert.equal(metricValue(families, "kubelet_certificate_manager_server_ttl_seconds"), Number.POSITIVE_INFINITY);
  assert.equal(metricValue(families, "kubelet_certificate_manager_server_rotation_seconds_count"), 1);
});

test("which configuration is assigned, active and good, in the words of older kubelets", async () => {
  const figures = new MetricRegistries();
  const map = { source: "/api/v1/namespaces/n/configmaps/m", uid: "u", resourceVersion: "7", key: "kubelet" };
  const local = { source: "local", uid: "", resourceVersion: "", key: "" };
  const shown = { assigned: map, active: local, lastKnownGood: undefined, hasError: true };
  showRollout(figures.main, () => shown);
  const families = await scrape(figures.main);
  const labels = { node_config_source: map.source, node_config_uid: "u", node_config_resource_version: "7" };
  assert.equal(metricValue(families, "kubelet_node_config_assigned", labels), 1);
  assert.equal(metricValue(families, "kubelet_node_config_active", { node_config_source: "local" }), 1);
  assert.deepEqual(seriesOf(families, "kubelet_node_config_last_known_good"), []);
  assert.equal(metricValue(families, "kubelet_node_config_error"), 1);
});

describe("the start of a node", () => {
  const node = (createdAt: number, ready: string): Node => ({
    metadata: { name: "n", creationTimestamp: new Date(createdAt).toISOString() },
    status: { conditions: [{ type: "Ready", status: ready }] },
  });

  test("from agent to registration to ready", async () => {
    const { figures, metrics, clock } = madeUp();
    await clock.advance(2_000);
    metrics.startup.begin();
    await clock.advance(3_000);
    metrics.startup.onNode(node(clock.now(), "False"));
    await clock.advance(5_000);
    metrics.startup.onNode(node(clock.now(), "True"));
    await clock.advance(50_000);
    metrics.startup.onNode(node(clock.now(), "True"));
    const families = await scrape(figures.main);
    const span = (name: string): number => metricValue(families, `kubelet_node_startup_${name}duration_seconds`);
    assert.deepEqual([span("pre_registration_"), span("registration_"), span("post_registration_")], [2, 3, 5]);
    assert.ok(span("") >= 10);
  });

  test("of a node that was there before nothing is told", async () => {
    const { figures, metrics, clock } = madeUp();
    metrics.startup.begin();
    metrics.startup.onNode(node(clock.now() - 60_000, "True"));
    metrics.startup.onNode(node(clock.now(), "True"));
    const families = await scrape(figures.main);
    assert.deepEqual(
      [...families.keys()].filter((name) => name.startsWith("kubelet_node_startup")),
      [],
    );
  });
});

for (const [what, spans, expected] of [
  ["none", [], 0],
  ["one", [[0, 10]], 10],
  [
    "one after the other",
    [
      [0, 10],
      [20, 25],
    ],
    15,
  ],
  [
    "at the same time",
    [
      [0, 10],
      [2, 8],
    ],
    10,
  ],
  [
    "overlapping",
    [
      [5, 15],
      [0, 10],
    ],
    15,
  ],
  ["still running", [[90, undefined]], 10],
] as const) {
  test(`time for images: ${what}`, () => {
    const entries = (spans as readonly (readonly [number, number | undefined])[]).map(
      ([startedAt, endedAt]): LedgerEntry => ({ step: "pull", subject: "", startedAt, endedAt, outcome: "ok" }),
    );
    const other: LedgerEntry = { step: "sandbox", subject: "", startedAt: 0, endedAt: 99, outcome: "ok" };
    assert.equal(pullMs([other, ...entries], 100), expected);
  });
}
