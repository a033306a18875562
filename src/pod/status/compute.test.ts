import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { exited, observedPod, testContainer, testObserved, testPod, testSandbox } from "../../../test/support/pods.ts";
import { leastProcessorTime } from "../../../test/support/processor-time.ts";
import type {
  ContainerStatus,
  IdentifiedPod,
  ObservedContainer,
  ObservedPod,
  PodStatus,
} from "../../ground/model/index.ts";
import { computePodStatus, finalPodStatus } from "./compute.ts";
import type { PendingResize, ResizeFacts, StatusInput, WaitingReason } from "./input.ts";

interface Given {
  readonly previous?: PodStatus;
  readonly waiting?: Readonly<Record<string, WaitingReason>>;
  readonly notReady?: readonly string[];
  readonly notStarted?: readonly string[];
  readonly tornDown?: boolean;
  readonly pending?: PendingResize;
  readonly resize?: Partial<ResizeFacts>;
  readonly texts?: Readonly<Record<string, string>>;
}

function input(pod: IdentifiedPod, observed: ObservedPod, given: Given = {}): StatusInput {
  return {
    pod,
    observed,
    previous: given.previous,
    flags: {
      started: ({ name }) => !(given.notStarted ?? []).includes(name),
      ready: ({ name }) => !(given.notReady ?? []).includes(name),
    },
    waitingReason: (name) => given.waiting?.[name],
    terminationText: ({ name }) => given.texts?.[name] ?? "",
    node: { runtimeName: "containerd", hostIPs: ["192.0.2.1"] },
    now: Date.UTC(2026, 0, 1),
    deviceHealth: () => [],
    resize: {
      pending: given.pending,
      accepted: undefined,
      given: { to: () => undefined, toPod: () => undefined },
      podLevel: undefined,
      isUnderWay: false,
      error: undefined,
      ...given.resize,
    },
    tornDown: given.tornDown ?? false,
    sandboxReady: true,
  };
}

function status(pod: IdentifiedPod, observed: ObservedPod, given: Given = {}): PodStatus {
  return computePodStatus(input(pod, observed, given));
}

function first(list: readonly ContainerStatus[] | undefined): ContainerStatus {
  const [container] = list ?? [];
  if (container === undefined) throw new Error("there is no container status");
  return container;
}

function conditionOf(podStatus: PodStatus, type: string): object {
  const found = podStatus.conditions?.find((condition) => condition.type === type);
  return { status: found?.status, reason: found?.reason, message: found?.message };
}

const waiting = { reason: "ErrImagePull", message: "no such image" } as const;
const crash = { reason: "CrashLoopBackOff", message: "back-off 10s restarting failed container=main pod=p" } as const;
const never = testPod({ restartPolicy: "Never" });
const onFailure = testPod({ restartPolicy: "OnFailure" });
const two = (policy: string): IdentifiedPod =>
  testPod({ restartPolicy: policy, containers: [testContainer("a"), testContainer("b")] });
const withInit = testPod({ initContainers: [testContainer("setup")] });
const withInitNever = testPod({ restartPolicy: "Never", initContainers: [testContainer("setup")] });
const side = testContainer("side", { restartPolicy: "Always" });
const withSide = testPod({ initContainers: [side] });

describe("phase", () => {
  for (const [name, pod, containers, given, wanted] of [
    ["nothing yet", testPod(), [], {}, "Pending"],
    ["running", testPod(), [testObserved("main")], {}, "Running"],
    ["created", testPod(), [testObserved("main", { state: "created" })], {}, "Pending"],
    ["waiting for an image", testPod(), [], { waiting: { main: waiting } }, "Pending"],
    ["crashed, will restart", testPod(), [exited("main", 1)], {}, "Running"],
    ["in crash back-off", testPod(), [exited("main", 1)], { waiting: { main: crash } }, "Running"],
    ["Never, exit 0", never, [exited("main", 0)], {}, "Succeeded"],
    ["Never, exit 1", never, [exited("main", 1)], {}, "Failed"],
    ["OnFailure, exit 0", onFailure, [exited("main", 0)], {}, "Succeeded"],
    ["OnFailure, exit 1", onFailure, [exited("main", 1)], {}, "Running"],
    ["Never, one of two failed, other runs", two("Never"), [testObserved("b"), exited("a", 1)], {}, "Running"],
    ["Never, one of two failed, other succeeded", two("Never"), [exited("b", 0), exited("a", 1)], {}, "Failed"],
    ["one runs, one waits", two("Always"), [testObserved("a")], {}, "Pending"],
    ["init runs", withInit, [testObserved("setup")], {}, "Pending"],
    ["init failed, will retry", withInit, [exited("setup", 1)], {}, "Pending"],
    ["init failed for good", withInitNever, [exited("setup", 1)], {}, "Failed"],
    ["init done, main runs", withInit, [testObserved("main"), exited("setup", 0)], {}, "Running"],
    ["sidecar starting", withSide, [testObserved("side")], { notStarted: ["side"] }, "Pending"],
    ["sidecar that never ran beside a running main", withSide, [testObserved("main")], {}, "Pending"],
    ["sidecar crashed beside a running main", withSide, [testObserved("main"), exited("side", 1)], {}, "Running"],
    ["torn down, all succeeded", testPod(), [exited("main", 0)], { tornDown: true }, "Succeeded"],
    ["torn down, killed", testPod(), [exited("main", 137)], { tornDown: true }, "Failed"],
    ["an ended pod stays ended", testPod(), [testObserved("main")], { previous: { phase: "Failed" } }, "Failed"],
  ] as const) {
    test(name, () => assert.equal(status(pod, observedPod({ containers }), given).phase, wanted));
  }

  test("a static pod that is torn down gets no final phase", () => {
    const pod = testPod({}, { annotations: { "kubernetes.io/config.source": "file" } });
    assert.equal(status(pod, observedPod({ containers: [exited("main", 0)] }), { tornDown: true }).phase, "Running");
  });
});

describe("conditions", () => {
  const running = observedPod({ containers: [testObserved("main")] });
  for (const [name, type, pod, observed, given, wanted] of [
    ["ready", "Ready", testPod(), running, {}, ["True"]],
    [
      "not ready",
      "Ready",
      testPod(),
      running,
      { notReady: ["main"] },
      ["False", "ContainersNotReady", "containers with unready status: [main]"],
    ],
    [
      "not started is not ready",
      "ContainersReady",
      testPod(),
      running,
      { notStarted: ["main"] },
      ["False", "ContainersNotReady", "containers with unready status: [main]"],
    ],
    [
      "two unready ones are listed",
      "ContainersReady",
      two("Always"),
      observedPod(),
      {},
      ["False", "ContainersNotReady", "containers with unready status: [a b]"],
    ],
    ["completed", "Ready", never, observedPod({ containers: [exited("main", 0)] }), {}, ["False", "PodCompleted"]],
    ["failed", "ContainersReady", never, observedPod({ containers: [exited("main", 1)] }), {}, ["False", "PodFailed"]],
    ["initialised without init containers", "Initialized", testPod(), observedPod(), {}, ["True"]],
    [
      "not initialised",
      "Initialized",
      withInit,
      observedPod({ containers: [testObserved("setup")] }),
      {},
      ["False", "ContainersNotInitialized", "containers with incomplete status: [setup]"],
    ],
    [
      "initialised by a started sidecar",
      "Initialized",
      withSide,
      observedPod({ containers: [testObserved("side")] }),
      {},
      ["True"],
    ],
    [
      "initialised, completed",
      "Initialized",
      never,
      observedPod({ containers: [exited("main", 0)] }),
      {},
      ["True", "PodCompleted"],
    ],
    ["scheduled", "PodScheduled", testPod(), observedPod(), {}, ["True"]],
    [
      "an unready sidecar makes the pod unready",
      "Ready",
      withSide,
      observedPod({ containers: [testObserved("main"), testObserved("side")] }),
      { notReady: ["side"] },
      ["False", "ContainersNotReady", "containers with unready status: [side]"],
    ],
  ] as const) {
    test(`${type}: ${name}`, () => {
      const [wantedStatus, reason, message] = wanted;
      assert.deepEqual(conditionOf(status(pod, observed, given), type), { status: wantedStatus, reason, message });
    });
  }

  test("readiness gates", () => {
    const pod = testPod({ readinessGates: [{ conditionType: "a/b" }] });
    assert.deepEqual(conditionOf(status(pod, running), "Ready"), {
      status: "False",
      reason: "ReadinessGatesNotReady",
      message: 'corresponding condition of pod readiness gate "a/b" does not exist.',
    });
    const closed: PodStatus = { conditions: [{ type: "a/b", status: "False" }] };
    assert.deepEqual(conditionOf(status(pod, running, { previous: closed }), "Ready"), {
      status: "False",
      reason: "ReadinessGatesNotReady",
      message: 'the status of pod readiness gate "a/b" is not "True", but False',
    });
    const open: PodStatus = { conditions: [{ type: "a/b", status: "True" }] };
    const computed = status(pod, running, { previous: open });
    assert.equal(computed.conditions?.[0]?.type, "a/b", "conditions of others are kept");
    assert.equal(computed.conditions?.find(({ type }) => type === "Ready")?.status, "True");
  });

  test("the time of a condition moves only with its status", () => {
    const before = status(testPod(), running);
    const later = computePodStatus({
      ...input(testPod(), running, { previous: before, notReady: ["main"] }),
      now: Date.UTC(2026, 0, 2),
    });
    const time = (of: PodStatus, type: string): string | undefined =>
      of.conditions?.find((condition) => condition.type === type)?.lastTransitionTime;
    assert.equal(time(later, "PodScheduled"), "2026-01-01T00:00:00Z");
    assert.equal(time(later, "Ready"), "2026-01-02T00:00:00Z");
    assert.equal(later.startTime, "2026-01-01T00:00:00Z");
  });
});

describe("container statuses", () => {
  test("waiting before any record", () => {
    assert.deepEqual(first(status(testPod(), observedPod()).containerStatuses).state, {
      waiting: { reason: "ContainerCreating" },
    });
    assert.deepEqual(first(status(withInit, observedPod()).containerStatuses).state, {
      waiting: { reason: "PodInitializing" },
    });
    assert.deepEqual(first(status(withInit, observedPod()).initContainerStatuses).state, {
      waiting: { reason: "PodInitializing" },
    });
  });

  test("running", () => {
    const container = first(status(testPod(), observedPod({ containers: [testObserved("main")] })).containerStatuses);
    assert.deepEqual(container.state, { running: { startedAt: "1970-01-01T00:00:03Z" } });
    assert.equal(container.containerID, "containerd://main-0");
    assert.equal(container.ready, true);
    assert.equal(container.started, true);
    assert.equal(container.imageID, "sha256:1");
  });

  test("the newest instance is the state, the one before the last state", () => {
    const records = [
      testObserved("main", { annotations: { ...testObserved("main").annotations, restartCount: 3 } }),
      exited("main", 2),
    ];
    const container = first(status(testPod(), observedPod({ containers: records })).containerStatuses);
    assert.equal(container.restartCount, 3);
    assert.equal(container.lastState?.terminated?.exitCode, 2);
    assert.notEqual(container.state?.running, undefined);
  });

  test("instances whose start failed do not hide the end of the one that ran", () => {
    const failed = testObserved("main", { state: "created" });
    const containers = [failed, failed, exited("main", 2)];
    const observed = observedPod({ containers });
    const refused = { reason: "RunContainerError", message: "made up" } as const;
    for (const given of [{}, { waiting: { main: refused } }]) {
      const { phase, containerStatuses } = status(testPod(), observed, given);
      assert.equal(first(containerStatuses).lastState?.terminated?.exitCode, 2);
      assert.equal(phase, "Running");
    }
  });

  test("in back-off the end moves to the last state", () => {
    const container = first(
      status(testPod(), observedPod({ containers: [exited("main", 1)] }), { waiting: { main: crash } })
        .containerStatuses,
    );
    assert.deepEqual(container.state, { waiting: crash });
    assert.equal(container.lastState?.terminated?.exitCode, 1);
  });

  test("no back-off is shown for a container that will not restart, or a pod being deleted", () => {
    const ended = first(
      status(never, observedPod({ containers: [exited("main", 1)] }), { waiting: { main: crash } }).containerStatuses,
    );
    assert.equal(ended.state?.terminated?.exitCode, 1);
    const deleting = testPod({}, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const container = first(
      status(deleting, observedPod({ containers: [exited("main", 1)] }), { waiting: { main: crash } })
        .containerStatuses,
    );
    assert.equal(container.state?.terminated?.exitCode, 1);
  });

  test("termination messages: runtime's and container's, cut to the pod's share", () => {
    const record = exited("main", 1, { message: "oops" });
    const container = first(
      status(testPod(), observedPod({ containers: [record] }), { texts: { main: "bye" } }).containerStatuses,
    );
    assert.equal(container.state?.terminated?.message, "oops: bye");
    const long = first(
      status(two("Always"), observedPod({ containers: [exited("a", 1)] }), { texts: { a: "x".repeat(20_000) } })
        .containerStatuses,
    );
    assert.equal(long.state?.terminated?.message?.length, 6144);
  });

  test("one that the runtime has forgotten keeps what is known of its end before", () => {
    const containers = [testObserved("main"), exited("main", 7)];
    const previous = status(testPod(), observedPod({ containers }));
    const container = first(status(testPod(), observedPod(), { previous }).containerStatuses);
    assert.equal(container.lastState?.terminated?.exitCode, 7);
    assert.equal(container.restartCount, first(previous.containerStatuses).restartCount);
  });

  test("an older record that removal left behind does not take back what was told of the last instance", () => {
    const last = { ...exited("main", 7), annotations: { ...exited("main", 7).annotations, restartCount: 2 } };
    const older = { ...exited("main", 1), annotations: { ...exited("main", 1).annotations, restartCount: 1 } };
    const previous = status(testPod(), observedPod({ containers: [last, older] }));
    const container = first(status(testPod(), observedPod({ containers: [older] }), { previous }).containerStatuses);
    assert.equal(container.restartCount, 2);
    assert.equal(container.state?.terminated?.exitCode, 7);
  });

  test("an instance that was told of and removed before it ran does not take a restart back", () => {
    const counted = (record: ObservedContainer, restartCount: number): ObservedContainer => ({
      ...record,
      annotations: { ...record.annotations, restartCount },
    });
    const ended = counted(exited("main", 1), 1);
    const cutOff = counted(testObserved("main", { state: "created" }), 2);
    const previous = status(testPod(), observedPod({ containers: [cutOff, ended] }));
    assert.equal(first(previous.containerStatuses).restartCount, 2);
    const container = first(status(testPod(), observedPod({ containers: [ended] }), { previous }).containerStatuses);
    assert.equal(container.restartCount, 2);
    assert.equal(container.state?.terminated?.exitCode, 1);
  });

  test("one whose state stays unknown is not counted back", () => {
    const unknown = observedPod({ containers: [testObserved("main", { state: "unknown" })] });
    const running = status(testPod(), observedPod({ containers: [testObserved("main")] }));
    const previous = status(testPod(), unknown, { previous: running });
    assert.equal(first(previous.containerStatuses).restartCount, 1);
    assert.equal(first(status(testPod(), unknown, { previous }).containerStatuses).restartCount, 1);
  });

  test("what containers wait for is cut to the pod's share", () => {
    const waiting = { main: { reason: "ErrImagePull", message: "x".repeat(1_000_000) } } as const;
    const container = first(status(testPod(), observedPod(), { waiting }).containerStatuses);
    assert.equal(container.state?.waiting?.message?.length, 64 * 1024);
  });

  test("a running container that the runtime has forgotten counts as lost", () => {
    const previous = status(testPod(), observedPod({ containers: [testObserved("main")] }));
    const container = first(status(testPod(), observedPod(), { previous }).containerStatuses);
    assert.equal(container.restartCount, 1);
    assert.deepEqual(container.lastState?.terminated, {
      exitCode: 137,
      reason: "ContainerStatusUnknown",
      message: "The container could not be located when the pod was deleted.  The container used to be Running",
    });
  });

  test("a running container whose state is unknown counts as lost", () => {
    const previous = status(testPod(), observedPod({ containers: [testObserved("main")] }));
    const container = first(
      status(testPod(), observedPod({ containers: [testObserved("main", { state: "unknown" })] }), { previous })
        .containerStatuses,
    );
    assert.equal(container.state?.terminated?.reason, "ContainerStatusUnknown");
    assert.equal(container.restartCount, 1);
  });

  test("mounts are shown from the beginning, resources once there is a container, asked for or not", () => {
    const volumeMounts = [
      { name: "a", mountPath: "/a" },
      { name: "b", mountPath: "/b", readOnly: true },
      { name: "c", mountPath: "/c", readOnly: true, recursiveReadOnly: "Enabled" },
    ];
    const pod = testPod({
      containers: [testContainer("main", { volumeMounts })],
      ephemeralContainers: [{ name: "debug", image: "i" }],
    });
    const shown = [
      { name: "a", mountPath: "/a" },
      { name: "b", mountPath: "/b", readOnly: true, recursiveReadOnly: "Disabled" },
      { name: "c", mountPath: "/c", readOnly: true, recursiveReadOnly: "Enabled" },
    ];
    const waiting = first(status(pod, observedPod()).containerStatuses);
    assert.deepEqual(waiting.volumeMounts, shown);
    assert.equal(waiting.resources, undefined);
    const running = status(pod, observedPod({ containers: [testObserved("main"), testObserved("debug")] }));
    assert.deepEqual(first(running.containerStatuses).volumeMounts, shown);
    assert.deepEqual(first(running.containerStatuses).resources, {});
    assert.deepEqual(first(running.ephemeralContainerStatuses).resources, {});
  });

  test("an init container is ready when it has succeeded", () => {
    const done = first(status(withInit, observedPod({ containers: [exited("setup", 0)] })).initContainerStatuses);
    assert.equal(done.ready, true);
    assert.equal(done.started, false);
  });

  test("regular containers are sorted by name, ephemeral ones have no started flag", () => {
    const pod = testPod({
      containers: [testContainer("z"), testContainer("b")],
      ephemeralContainers: [{ name: "debug", image: "i" }],
    });
    const computed = status(pod, observedPod({ containers: [testObserved("debug")] }));
    assert.deepEqual(
      computed.containerStatuses?.map(({ name }) => name),
      ["b", "z"],
    );
    assert.equal(first(computed.ephemeralContainerStatuses).started, undefined);
    assert.equal(first(computed.ephemeralContainerStatuses).ready, false);
  });
});

describe("addresses", () => {
  test("pod network", () => {
    const computed = status(testPod(), observedPod({ ips: ["fd00::5", "10.1.0.5"] }));
    assert.equal(computed.podIP, "10.1.0.5");
    assert.deepEqual(computed.podIPs, [{ ip: "10.1.0.5" }, { ip: "fd00::5" }]);
    assert.equal(computed.hostIP, "192.0.2.1");
  });

  test("an address is written as the pod itself is told it", () => {
    const { podIPs } = status(testPod(), observedPod({ ips: ["FD00:0:0::5", "10.1.0.5"] }));
    assert.deepEqual(podIPs, [{ ip: "10.1.0.5" }, { ip: "fd00::5" }]);
  });
  const ended = observedPod({ sandboxes: [], containers: [exited("main", 0)], ips: [] });
  const known = { phase: "Succeeded", podIP: "10.1.0.5", podIPs: [{ ip: "10.1.0.5" }] };
  for (const [whence, pod, given] of [
    ["this agent's last status", testPod({ restartPolicy: "Never" }), { previous: known }],
    ["the API", { ...testPod({ restartPolicy: "Never" }), status: known }, {}],
  ] as const)
    test(`kept from ${whence} when the pod is over and its sandbox tells no more`, () => {
      const { podIP, podIPs } = computePodStatus(input(pod, ended, given));
      assert.deepEqual({ podIP, podIPs }, { podIP: known.podIP, podIPs: known.podIPs });
    });
  test("not kept while the pod may get others", () => {
    const previous = { ...known, phase: "Running" };
    assert.equal(computePodStatus(input(testPod(), observedPod({ ips: [] }), { previous })).podIPs, undefined);
  });
  test("host network", () =>
    assert.equal(
      status(testPod({ hostNetwork: true }), observedPod({ sandboxes: [testSandbox({ network: "node" })], ips: [] }))
        .podIP,
      "192.0.2.1",
    ));
});

describe("the final status", () => {
  test("what is not accounted for is lost, and the pod has failed", () => {
    const given = input(testPod(), observedPod({ containers: [] }), { tornDown: true });
    const final = finalPodStatus(given, computePodStatus(given));
    assert.equal(final.phase, "Failed");
    assert.equal(first(final.containerStatuses).state?.terminated?.exitCode, 137);
    const ready = final.conditions?.find(({ type }) => type === "Ready");
    assert.deepEqual([ready?.status, ready?.reason], ["False", "ContainersNotReady"], "why it never was ready stays");
  });
  test("what claims to be ready has failed with the pod", () => {
    const given = input(testPod(), observedPod({ containers: [testObserved("main")] }));
    const running = computePodStatus(given);
    const final = finalPodStatus({ ...given, tornDown: true }, running);
    const verdicts = (type: string) => {
      const found = [running, final].map(({ conditions }) => conditions?.find((condition) => condition.type === type));
      return found.map((condition) => `${condition?.status} ${condition?.reason ?? ""}`);
    };
    assert.deepEqual(verdicts("Ready"), ["True ", "False PodFailed"]);
    assert.deepEqual(verdicts("ContainersReady"), ["True ", "False PodFailed"]);
  });
  test("a static pod keeps its phase", () => {
    const pod = testPod({}, { annotations: { "kubernetes.io/config.source": "file" } });
    const given = input(pod, observedPod({ containers: [exited("main", 0)] }), { tornDown: true });
    assert.equal(finalPodStatus(given, computePodStatus(given)).phase, "Running");
  });
});

test("a pod with very many containers costs no more than their number", async () => {
  const cost = (count: number): Promise<number> => {
    const list = Array.from({ length: count }, (_, index) => testContainer(`c${index}`));
    const sidecars = list.map(({ name }) => testContainer(`i${name}`, { restartPolicy: "Always" }));
    const pod = testPod({ containers: list, initContainers: sidecars });
    const previous = status(pod, observedPod());
    return leastProcessorTime(() => status(pod, observedPod(), { previous }));
  };
  const [small, large] = [await cost(500), await cost(8_000)];
  assert.ok(large < 60 * Math.max(small, 1_000), `${small} us for 500, ${large} us for 8,000`);
});
