import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { kinds } from "../kinds/index.ts";
import { humanDuration } from "./age.ts";
import { tableOf, wantsTable } from "./table.ts";

describe("durations as kubectl shows them", () => {
  for (const [seconds, expected] of [
    [-5, "<invalid>"],
    [0, "0s"],
    [119, "119s"],
    [120, "2m"],
    [125, "2m5s"],
    [599, "9m59s"],
    [600, "10m"],
    [10_799, "179m"],
    [10_800, "3h"],
    [14_460, "4h1m"],
    [28_800, "8h"],
    [172_799, "47h"],
    [172_800, "2d"],
    [176_400, "2d1h"],
    [691_200, "8d"],
    [63_072_000, "2y"],
    [63_158_400, "2y1d"],
    [400_000_000, "12y"],
  ] as const) {
    test(`${seconds} s`, () => assert.equal(humanDuration(seconds * 1000), expected));
  }
});

test("a table is made when it is what the client wants most", () => {
  assert.ok(wantsTable("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"));
  assert.ok(!wantsTable("application/json"));
  assert.ok(!wantsTable("application/json,application/json;as=Table;v=v1;g=meta.k8s.io"));
});

const nowMs = Date.parse("2026-01-01T01:00:00Z");

function cells(plural: string, object: object): Record<string, unknown> {
  const kind = kinds.find((each) => each.plural === plural);
  assert.ok(kind);
  const full = {
    apiVersion: "v1",
    kind: "",
    metadata: { name: "x", creationTimestamp: "2026-01-01T00:00:00Z" },
    ...object,
  };
  const made = tableOf(kind, [full], {}, { include: "None", withColumns: true, nowMs });
  const names = (made["columnDefinitions"] as { name: string }[]).map(({ name }) => name);
  const [row] = made["rows"] as { cells: unknown[] }[];
  return Object.fromEntries(names.map((name, index) => [name, row?.cells[index]]));
}

describe("the status column of pods", () => {
  const running = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const spec = { containers: [{ name: "a" }, { name: "b" }] };
  const status = (name: string, state: object, more: object = {}): object => ({
    name,
    state,
    ready: true,
    restartCount: 0,
    ...more,
  });
  for (const [title, pod, expected] of [
    ["pending", { status: { phase: "Pending" } }, "Pending"],
    [
      "running",
      { status: { phase: "Running", containerStatuses: [status("a", running), status("b", running)] } },
      "Running",
    ],
    ["evicted", { status: { phase: "Failed", reason: "Evicted" } }, "Evicted"],
    [
      "waiting",
      { status: { phase: "Pending", containerStatuses: [status("a", { waiting: { reason: "ImagePullBackOff" } })] } },
      "ImagePullBackOff",
    ],
    [
      "completed",
      {
        status: {
          phase: "Succeeded",
          containerStatuses: [status("a", { terminated: { exitCode: 0, reason: "Completed" } })],
        },
      },
      "Completed",
    ],
    [
      "exited without a reason",
      { status: { phase: "Failed", containerStatuses: [status("a", { terminated: { exitCode: 3 } })] } },
      "ExitCode:3",
    ],
    [
      "killed without a reason",
      { status: { phase: "Failed", containerStatuses: [status("a", { terminated: { exitCode: 137, signal: 9 } })] } },
      "Signal:9",
    ],
    [
      "one of two completed, the other ready",
      {
        status: {
          phase: "Running",
          conditions: [{ type: "Ready", status: "True" }],
          containerStatuses: [status("a", { terminated: { exitCode: 0, reason: "Completed" } }), status("b", running)],
        },
      },
      "Running",
    ],
    [
      "one of two completed, the pod not ready",
      {
        status: {
          phase: "Running",
          containerStatuses: [status("a", { terminated: { exitCode: 0, reason: "Completed" } }), status("b", running)],
        },
      },
      "NotReady",
    ],
    [
      "initialising",
      {
        spec: { ...spec, initContainers: [{ name: "i" }, { name: "j" }] },
        status: {
          phase: "Pending",
          initContainerStatuses: [status("i", { terminated: { exitCode: 0 } }), status("j", running)],
        },
      },
      "Init:1/2",
    ],
    [
      "init failing",
      {
        spec: { ...spec, initContainers: [{ name: "i" }] },
        status: { phase: "Pending", initContainerStatuses: [status("i", { waiting: { reason: "CrashLoopBackOff" } })] },
      },
      "Init:CrashLoopBackOff",
    ],
    [
      "init failed",
      {
        spec: { ...spec, initContainers: [{ name: "i" }] },
        status: {
          phase: "Pending",
          initContainerStatuses: [status("i", { terminated: { exitCode: 1, reason: "Error" } })],
        },
      },
      "Init:Error",
    ],
    [
      "gated",
      {
        status: {
          phase: "Pending",
          conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }],
        },
      },
      "SchedulingGated",
    ],
    [
      "terminating",
      { metadata: { name: "x", deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { phase: "Running" } },
      "Terminating",
    ],
    [
      "lost",
      {
        metadata: { name: "x", deletionTimestamp: "2026-01-01T00:00:00Z" },
        status: { phase: "Running", reason: "NodeLost" },
      },
      "Unknown",
    ],
  ] as const) {
    test(title, () => assert.equal(cells("pods", { spec, ...pod })["Status"], expected));
  }

  test("ready and restarts count containers and sidecars", () => {
    const lastState = { terminated: { exitCode: 1, finishedAt: "2026-01-01T00:58:00Z" } };
    const shown = cells("pods", {
      spec: { ...spec, initContainers: [{ name: "side", restartPolicy: "Always" }] },
      status: {
        phase: "Running",
        conditions: [{ type: "Initialized", status: "True" }],
        initContainerStatuses: [status("side", running, { restartCount: 1 })],
        containerStatuses: [
          status("a", running, { restartCount: 2, lastState }),
          status("b", running, { ready: false }),
        ],
      },
    });
    assert.equal(shown["Ready"], "2/3");
    assert.equal(shown["Restarts"], "3 (2m ago)");
    assert.equal(shown["Age"], "60m");
  });
});

describe("other tables", () => {
  for (const [plural, object, expected] of [
    [
      "nodes",
      {
        metadata: { name: "n", labels: { "node-role.kubernetes.io/worker": "" } },
        spec: { unschedulable: true },
        status: { conditions: [{ type: "Ready", status: "False" }] },
      },
      { Status: "NotReady,SchedulingDisabled", Roles: "worker" },
    ],
    [
      "services",
      {
        spec: {
          type: "NodePort",
          clusterIP: "10.96.0.2",
          ports: [
            { port: 80, nodePort: 30_000 },
            { port: 53, protocol: "UDP" },
          ],
        },
      },
      { "Cluster-IP": "10.96.0.2", "Port(s)": "80:30000/TCP,53/UDP", "External-IP": "<none>" },
    ],
    [
      "deployments",
      { spec: { replicas: 3 }, status: { readyReplicas: 2, updatedReplicas: 3 } },
      { Ready: "2/3", "Up-to-date": 3, Available: 0 },
    ],
    [
      "persistentvolumeclaims",
      {
        spec: { volumeName: "pv" },
        status: { phase: "Bound", capacity: { storage: "1024Mi" }, accessModes: ["ReadWriteOnce"] },
      },
      { Status: "Bound", Capacity: "1Gi", "Access Modes": "RWO" },
    ],
    [
      "jobs",
      { spec: { completions: 2 }, status: { succeeded: 1, startTime: "2026-01-01T00:59:00Z" } },
      { Status: "Running", Completions: "1/2", Duration: "60s" },
    ],
    [
      "events",
      {
        type: "Normal",
        reason: "Pulled",
        message: " hi\n",
        involvedObject: { kind: "Pod", name: "web" },
        lastTimestamp: "2026-01-01T00:59:30Z",
        source: { component: "kubelet", host: "n" },
      },
      { "Last Seen": "30s", Object: "pod/web", Message: "hi", Source: "kubelet, n" },
    ],
    [
      "certificatesigningrequests",
      { spec: { username: "u", signerName: "s" }, status: { conditions: [{ type: "Approved" }], certificate: "x" } },
      { Condition: "Approved,Issued", Requestor: "u" },
    ],
    ["leases", { spec: { holderIdentity: "me" } }, { Holder: "me" }],
    ["secrets", { type: "Opaque", data: { a: "", b: "" } }, { Type: "Opaque", Data: 2 }],
    ["resourceclaims", {}, { Name: "x", "Created At": "2026-01-01T00:00:00Z" }],
  ] as const) {
    test(plural, () => {
      const shown = cells(plural, object);
      for (const [column, value] of Object.entries(expected)) assert.equal(shown[column], value, column);
    });
  }
});
