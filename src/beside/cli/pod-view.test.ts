import assert from "node:assert/strict";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { ContainerStatus, Pod, PodStatus } from "../../ground/model/index.ts";
import { summarize } from "../../ground/model/index.ts";
import type { CommandIo } from "./io.ts";
import { drawOver, fitRows, renderTable, shortAge } from "./pod-table.ts";
import { PodView } from "./pod-view.ts";

const started = "2026-01-01T00:00:00Z";

function status(name: string, state: ContainerStatus["state"], more: Partial<ContainerStatus> = {}): ContainerStatus {
  return { name, image: "i", imageID: "", ready: state?.running !== undefined, restartCount: 0, state, ...more };
}

function pod(
  name: string,
  podStatus: PodStatus,
  more: { readonly init?: readonly string[]; readonly sidecars?: readonly string[] } = {},
): Pod {
  return {
    metadata: { name, uid: `uid-${name}` },
    spec: {
      initContainers: [
        ...(more.init ?? []).map((container) => ({ name: container, image: "i" })),
        ...(more.sidecars ?? []).map((container) => ({ name: container, image: "i", restartPolicy: "Always" })),
      ],
      containers: [{ name: "main", image: "i" }],
    },
    status: podStatus,
  };
}

const running = { running: { startedAt: started } };
const completed = { terminated: { exitCode: 0, reason: "Completed" } };
const ready = [{ type: "Ready", status: "True" }];

for (const { title, of, word } of [
  { title: "without status", of: pod("p", {}), word: "Pending" },
  {
    title: "running",
    of: pod("p", { phase: "Running", containerStatuses: [status("main", running)] }),
    word: "Running",
  },
  { title: "completed", of: pod("p", { phase: "Succeeded" }), word: "Completed" },
  { title: "failed", of: pod("p", { phase: "Failed" }), word: "Failed" },
  { title: "evicted", of: pod("p", { phase: "Failed", reason: "Evicted" }), word: "Evicted" },
  {
    title: "crashing",
    of: pod("p", {
      phase: "Running",
      containerStatuses: [status("main", { waiting: { reason: "CrashLoopBackOff" } })],
    }),
    word: "CrashLoopBackOff",
  },
  {
    title: "whose image cannot be pulled",
    of: pod("p", { phase: "Pending", containerStatuses: [status("main", { waiting: { reason: "ErrImagePull" } })] }),
    word: "ErrImagePull",
  },
  {
    title: "in its second init container",
    of: pod(
      "p",
      { phase: "Pending", podIP: "10.0.0.1", initContainerStatuses: [status("a", completed), status("b", running)] },
      { init: ["a", "b"] },
    ),
    word: "Init:1/2",
  },
  {
    title: "whose init container crashes",
    of: pod(
      "p",
      {
        phase: "Pending",
        podIP: "10.0.0.1",
        initContainerStatuses: [status("a", { waiting: { reason: "CrashLoopBackOff" } })],
      },
      { init: ["a"] },
    ),
    word: "Init:CrashLoopBackOff",
  },
  {
    title: "being deleted",
    of: { ...pod("p", { phase: "Running" }), metadata: { name: "p", deletionTimestamp: started } },
    word: "Terminating",
  },
]) {
  test(`a pod ${title} is ${word}`, () => assert.equal(summarize(of).status, word));
}

for (const { title, of, settled, failed } of [
  { title: "ready", of: pod("p", { phase: "Running", conditions: ready }), settled: true, failed: false },
  { title: "running, not ready", of: pod("p", { phase: "Running" }), settled: false, failed: false },
  { title: "succeeded", of: pod("p", { phase: "Succeeded" }), settled: true, failed: false },
  { title: "failed", of: pod("p", { phase: "Failed" }), settled: false, failed: true },
  { title: "pending", of: pod("p", { phase: "Pending", conditions: ready }), settled: false, failed: false },
]) {
  test(`settled or failed: ${title}`, () => {
    const summary = summarize(of);
    assert.deepEqual({ settled: summary.settled, failed: summary.failed }, { settled, failed });
  });
}

const clockPod = pod(
  "clock",
  {
    phase: "Running",
    podIP: "10.214.0.3",
    startTime: started,
    conditions: ready,
    initContainerStatuses: [status("prepare", completed), status("writer", running, { restartCount: 1 })],
    containerStatuses: [status("main", running)],
  },
  { init: ["prepare"], sidecars: ["writer"] },
);
const brokenPod = pod("broken", {
  phase: "Running",
  startTime: started,
  containerStatuses: [
    status("main", { terminated: { exitCode: 3, reason: "Error" } }, { restartCount: 2, ready: false }),
  ],
});

test("the table has pods in order of name and their containers below them", () => {
  const pods = [clockPod, brokenPod].map(summarize);
  assert.deepEqual(renderTable(pods, Date.parse(started) + 42_000, 200), [
    "POD                 STATUS          READY  RESTARTS  IP          AGE",
    "broken              Error (exit 3)  0/1    2                     42s",
    "  main              Error (exit 3)  no     2",
    "clock               Running         2/2    1         10.214.0.3  42s",
    "  prepare (init)    completed              0",
    "  writer (sidecar)  running         yes    1",
    "  main              running         yes    0",
  ]);
});

test("a wide table adds kubectl's columns: node, nominated node, readiness gates", () => {
  const { spec, status: podStatus, ...rest } = clockPod;
  const gated: Pod = {
    ...rest,
    spec: { containers: [], ...spec, nodeName: "n1", readinessGates: [{ conditionType: "a" }, { conditionType: "b" }] },
    status: { ...podStatus, nominatedNodeName: "n2", conditions: [...ready, { type: "b", status: "True" }] },
  };
  const [heading, broken, , clock] = renderTable([gated, brokenPod].map(summarize), 0, 200, "plain", "wide");
  assert.match(heading ?? "", / AGE +NODE +NOMINATED NODE +READINESS GATES$/);
  assert.match(broken ?? "", / 0s +<none> +<none> +<none>$/);
  assert.match(clock ?? "", / 0s +n1 +n2 +1\/2$/);
});

test("no line is wider than the terminal, and what does not fit in height is counted", () => {
  const lines = renderTable([summarize(clockPod)], 0, 20);
  assert.ok(lines.every((line) => line.length <= 20));
  assert.ok(lines[1]?.endsWith("…"));
  assert.deepEqual(fitRows(["a", "b", "c", "d"], 4), ["a", "b", "… and 2 more lines"]);
  assert.deepEqual(fitRows(["a", "b", "c"], 4), ["a", "b", "c"]);
});

for (const { ms, text } of [
  { ms: -5, text: "0s" },
  { ms: 119_999, text: "119s" },
  { ms: 120_000, text: "2m" },
  { ms: 7_200_000, text: "2h" },
  { ms: 172_800_000, text: "2d" },
]) {
  test(`an age of ${ms} ms is ${text}`, () => assert.equal(shortAge(ms), text));
}

function recordingIo(isTTY: boolean): { readonly io: CommandIo; readonly output: () => string } {
  const written: string[] = [];
  const sink = { write: (text: string | Uint8Array) => written.push(String(text)) };
  const clock = new FakeClock(Date.parse(started));
  const io: CommandIo = { ...recordIo("/").io, stdout: sink, stderr: sink, isTTY, clock };
  return { io, output: () => written.splice(0).join("") };
}

test("without a terminal there is one line per change and none without a change", () => {
  const { io, output } = recordingIo(false);
  const view = new PodView(io);
  const pending = pod("web", { phase: "Pending" });
  view.apply({ type: "ADDED", object: pending });
  assert.equal(output(), "  web: container main waiting\nweb: Pending, 0/1 ready\n");
  view.apply({ type: "MODIFIED", object: pending });
  view.draw();
  assert.equal(output(), "");
  const started = pod("web", { phase: "Running", podIP: "10.0.0.2", containerStatuses: [status("main", running)] });
  view.apply({ type: "MODIFIED", object: started });
  assert.equal(output(), "  web: container main running\nweb: Running, 1/1 ready, ip 10.0.0.2\n");
  view.apply({ type: "DELETED", object: started });
  assert.equal(output(), "web: gone\n");
  assert.deepEqual(view.pods, []);
});

test("on a terminal the table is drawn over itself", () => {
  const { io, output } = recordingIo(true);
  const view = new PodView(io);
  view.draw();
  assert.equal(output(), drawOver(0, ["No pods yet."]));
  view.apply({ type: "ADDED", object: clockPod });
  const drawn = output();
  assert.ok(drawn.startsWith("\x1b[1A\r\x1b[J"), "one line up, then clear");
  assert.match(drawn, /clock +Running +2\/2/);
  view.draw();
  assert.ok(output().startsWith("\x1b[5A\r\x1b[J"), "five lines up: heading, pod and three containers");
});

test("a watch that starts again forgets pods that are gone meanwhile", () => {
  const { io } = recordingIo(false);
  const view = new PodView(io);
  view.apply({ type: "ADDED", object: clockPod });
  view.restart();
  view.apply({ type: "ADDED", object: brokenPod });
  assert.deepEqual(
    view.pods.map(({ name }) => name),
    ["broken"],
  );
});
