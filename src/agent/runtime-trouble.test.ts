// What the engine makes of a runtime that hangs, forgets, restarts or says wrong things, on virtual time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine, type TestEngineOptions } from "../../test/support/test-engine.ts";
import { exitsAfter, runsForever } from "../beside/hollow/index.ts";
import type { RuntimeEvent } from "../connections/cri/index.ts";
import type { PodUid } from "../ground/model/index.ts";

test("one pod whose calls hang: the others start as fast as without it", async () => {
  const startAll = async (hangs: boolean): Promise<readonly number[]> => {
    await using node = await TestEngine.start({ startSlots: 4 });
    node.runtime.faults.add({ operation: "runPodSandbox", effect: { type: "delay", ms: 200 } });
    node.runtime.faults.add({ operation: "startContainer", effect: { type: "delay", ms: 100 } });
    if (hangs) node.runtime.faults.add({ podUid: "stuck", effect: { type: "hang" } });
    if (hangs) await node.want(enginePod("stuck"));
    await node.advance(5_000);
    const took: number[] = [];
    for (let pod = 0; pod < 5; pod++) {
      await node.want(enginePod(`pod-${pod}`));
      took.push(await node.until("running", () => node.phase(`pod-${pod}`) === "Running", 60_000, 10));
    }
    await node.want(...Array.from({ length: 20 }, (_, index) => enginePod(`burst-${index}`)));
    const running = (): number =>
      Array.from({ length: 20 }, (_, index) => node.phase(`burst-${index}`)).filter((phase) => phase === "Running")
        .length;
    took.push(await node.until("the burst runs", () => running() === 20, 60_000, 10));
    if (hangs) assert.notEqual(node.phase("stuck"), "Running");
    return took;
  };
  assert.deepEqual(await startAll(true), await startAll(false));
});

test("an unwanted pod whose calls hang holds up neither wanted pods nor other unwanted ones", async () => {
  await using node = await TestEngine.start();
  await node.want(enginePod("hung"), enginePod("other"));
  await node.stop();
  const hang = node.runtime.faults.add({ podUid: "hung", effect: { type: "hang" } });
  node.forget("hung", "other");
  await node.restart();
  await node.want(enginePod("fresh"));
  await node.advance(5_000);
  assert.deepEqual(node.running(), ["fresh/main", "hung/main"]);
  hang.remove();
  await node.advance(60_000);
  assert.deepEqual(node.running(), ["fresh/main"]);
});

test("50 idle pods: at most 10 calls of the runtime in a minute", async () => {
  await using node = await TestEngine.start();
  const readinessProbe = { tcpSocket: { port: 1 }, periodSeconds: 3_600, initialDelaySeconds: 3_600 };
  const probed = [{ name: "main", image: "busybox:1", readinessProbe }];
  const pods = Array.from({ length: 50 }, (_, index) =>
    enginePod(`idle-${index}`, index < 25 ? {} : { containers: probed }),
  );
  await node.want(...pods);
  await node.until("all run", () => pods.every(({ metadata }) => node.phase(metadata.uid) === "Running"));
  await node.advance(60_000);
  for (let minute = 0; minute < 10; minute++) {
    const before = node.calls();
    await node.advance(60_000);
    assert.ok(node.calls() - before <= 10, `${node.calls() - before} calls in minute ${minute}`);
  }
});

for (const [title, spoil] of [
  ["doubled", (hint: RuntimeEvent) => [hint, hint, hint]],
  ["lost", () => []],
  [
    "without the pod they are about",
    (hint: RuntimeEvent) => (hint.kind === "gap" ? [hint] : [{ kind: hint.kind, id: hint.id }]),
  ],
] as const) {
  test(`hints that are ${title} do no harm`, async () => {
    await using node = await TestEngine.start({ runtimeEvents: spoiltEvents(spoil) });
    node.runtime.behave("main", exitsAfter(30_000, 1), runsForever());
    await node.want(
      enginePod("web"),
      enginePod("job", { restartPolicy: "Never", containers: [{ name: "work", image: "busybox:1" }] }),
    );
    node.runtime.behave("work", exitsAfter(30_000, 0));
    await node.until("the restart is seen", () => node.container("web", "main").restartCount === 1, 400_000);
    await node.until("all has settled", () => node.running().length === 2, 400_000);
    await node.advance(400_000);
    assert.equal(node.runtime.callCount("createContainer"), 3);
    assert.equal(node.container("web", "main").restartCount, 1);
    await node.drop("web", "job");
    await node.until("gone", () => node.runtime.sandboxes().length === 0, 400_000);
  });
}

test("late and reordered hints do no harm", async () => {
  const held: (() => void)[] = [];
  await using node = await TestEngine.start({
    runtimeEvents: (runtimeEvents) => ({
      get source() {
        return runtimeEvents.source;
      },
      async *subscribe(signal) {
        const late: RuntimeEvent[] = [];
        let deliver = (): void => {};
        held.push(() => deliver());
        const inner = runtimeEvents.subscribe(signal)[Symbol.asyncIterator]();
        const collect = (async () => {
          for (;;) {
            const { value, done } = await inner.next();
            if (done) return;
            late.unshift(value);
          }
        })();
        collect.catch(() => {});
        while (!signal.aborted) {
          await new Promise<void>((resolve) => {
            deliver = resolve;
            signal.addEventListener("abort", () => resolve(), { once: true });
          });
          yield* late.splice(0);
        }
      },
    }),
  });
  node.runtime.behave("main", exitsAfter(1_000, 1), exitsAfter(1_000, 1), runsForever());
  await node.want(enginePod("web"));
  for (let round = 0; round < 30; round++) {
    await node.advance(2_000);
    for (const deliver of held) deliver();
  }
  await node.advance(5_000);
  assert.equal(node.container("web", "main").restartCount, 2);
  assert.equal(node.runtime.callCount("createContainer"), 3);
  assert.deepEqual(node.running(), ["web/main"]);
});

test("no network yet: pods of the pod network wait and say why, those of the host's start; then all run", async () => {
  await using node = await TestEngine.start();
  node.runtime.setNetworkReady(false);
  await node.restart();
  await node.want(enginePod("waits"), enginePod("host", { hostNetwork: true }));
  await node.advance(10_000);
  assert.deepEqual(node.running(), ["host/main"]);
  assert.equal(node.phase("waits"), "Pending");
  const { blocker } = node.engine.ledger.read("waits" as PodUid) ?? {};
  assert.equal(blocker?.reason, "NetworkNotReady");
  assert.ok(node.events.some((event) => event.startsWith("waits NetworkNotReady: network is not ready: ")));
  node.runtime.setNetworkReady(true);
  const took = await node.until("it runs", () => node.phase("waits") === "Running");
  assert.ok(took <= 2_000, `${took} ms after the network came`);
});

test("the network of running pods fails: they are left alone", async () => {
  await using node = await TestEngine.start();
  await node.want(enginePod("web"));
  node.runtime.setNetworkReady(false);
  await node.advance(200_000);
  assert.equal(node.runtime.callCount("createContainer"), 1);
  assert.equal(node.phase("web"), "Running");
});

test("the runtime forgets everything: all runs again, and the count says so", async () => {
  await using node = await TestEngine.start();
  await node.want(enginePod("web"));
  const before = node.container("web", "main").containerID;
  node.runtime.restart("nothing");
  await node.until("it runs again", () => node.running().length === 1, 30_000);
  await node.advance(1_000);
  const { containerID, restartCount, lastState } = node.container("web", "main");
  assert.notEqual(containerID, before);
  assert.equal(restartCount, 1);
  assert.deepEqual([lastState?.terminated?.exitCode, lastState?.terminated?.reason], [137, "ContainerStatusUnknown"]);
  assert.equal(node.phase("web"), "Running");
});

test("after a reboot: a new sandbox, init containers again, counts go on", async () => {
  await using node = await TestEngine.start();
  const setup = { name: "setup", image: "busybox:1" };
  node.runtime.behave("setup", exitsAfter(100, 0));
  await node.want(enginePod("web", { initContainers: [setup] }));
  await node.until("it runs", () => node.running()[0] === "web/main");
  await node.stop();
  node.runtime.restart("records");
  await node.restart();
  await node.until("it runs again", () => node.running()[0] === "web/main", 30_000);
  assert.equal(node.container("web", "main").restartCount, 1);
  assert.equal(node.container("web", "setup").state?.terminated?.exitCode, 0);
  assert.deepEqual(
    node.runtime.sandboxes().map(({ config, state }) => `${config.metadata?.attempt} ${state}`),
    ["0 notReady", "1 ready"],
  );
  assert.equal(node.events.filter((event) => event.startsWith("web SandboxChanged")).length, 1);
});

test("the runtime is restarted: nothing that runs is touched", async () => {
  await using node = await TestEngine.start();
  await node.want(...Array.from({ length: 20 }, (_, index) => enginePod(`pod-${index}`)));
  await node.until("all run", () => node.running().length === 20);
  for (let round = 0; round < 6; round++) {
    node.runtime.kill();
    await node.advance(3_000);
    assert.equal(node.phase("pod-0"), "Running");
    node.runtime.start("everything");
    await node.advance(10_000);
  }
  assert.equal(node.runtime.callCount("createContainer"), 20);
  assert.equal(node.runtime.callCount("stopContainer"), 0);
  node.runtime.exit("main", 1);
  await node.until("exits are seen again", () => node.container("pod-3", "main").restartCount === 1, 10_000);
});

test("a sandbox that dies is replaced with all containers in it; under Never the pod is over", async () => {
  await using node = await TestEngine.start();
  await node.want(enginePod("web"), enginePod("once", { restartPolicy: "Never" }));
  await node.until("both run", () => node.running().length === 2);
  for (const { id } of node.runtime.sandboxes()) node.runtime.killSandbox(id);
  await node.until("the pod runs in a new one", () => node.container("web", "main").restartCount === 1, 30_000);
  await node.until("the other is over", () => node.phase("once") === "Succeeded", 60_000);
  assert.deepEqual(node.running(), ["web/main"]);
  assert.equal(node.container("once", "main").restartCount, 0);
});

test("a dead sandbox whose network can't be freed holds up neither its pod's next start nor its end", async () => {
  await using node = await TestEngine.start();
  await node.want(enginePod("web"));
  await node.until("it runs", () => node.running().length === 1);
  // What containerd says when a power cut has emptied the records of its network plugins, now and for ever.
  const message = 'failed to get network "cni0" cached result: unexpected end of JSON input';
  const dead = node.runtime.sandboxes().map(({ id }) => id);
  node.runtime.faults.add({ operation: "stopPodSandbox", effect: { type: "error", code: "Unknown", message } });
  for (const id of dead) node.runtime.killSandbox(id);
  await node.until("the pod runs in a new one", () => node.container("web", "main").restartCount === 1, 60_000);
  assert.deepEqual(node.running(), ["web/main"]);
  for (const { id } of node.runtime.sandboxes()) node.runtime.killSandbox(id);
  await node.drop("web");
  await node.until("the pod is gone", () => node.engine.views.pods().length === 0, 60_000);
});

test("sandboxes that can't be made: said in an event and by why, tried again ever more slowly", async () => {
  await using node = await TestEngine.start();
  const fault = node.runtime.faults.add({
    operation: "runPodSandbox",
    effect: { type: "error", code: "Unknown", message: "no more addresses" },
  });
  await node.want(enginePod("web"));
  await node.advance(60_000);
  const tries = node.runtime.callCount("runPodSandbox");
  assert.ok(tries >= 4 && tries <= 8, `${tries} tries in a minute`);
  assert.ok(
    node.events.some((event) =>
      /^web FailedCreatePodSandBox: Failed to create pod sandbox: .*no more addresses/.test(event),
    ),
  );
  const { blocker } = node.engine.ledger.read("web" as PodUid) ?? {};
  assert.match(blocker?.message ?? "", /no more addresses/);
  assert.ok((blocker?.nextTryAt ?? 0) > node.clock.now());
  fault.remove();
  await node.until("it runs", () => node.phase("web") === "Running", 31_000);
});

test("a start that failed is tried again in its time, not whenever something else happens to the pod", async () => {
  await using node = await TestEngine.start({ runtime: { unknownImages: "absent" } });
  node.runtime.imageStore.publish({ name: "busybox:1" });
  const containers = [
    { name: "main", image: "busybox:1" },
    { name: "lacking", image: "absent:1" },
  ];
  await node.want(enginePod("web", { containers }));
  const tries = (): number => node.runtime.callCount("pullImage");
  const before = tries();
  for (let wake = 0; wake < 20; wake++) {
    node.engine.workers.wake("web" as PodUid);
    await node.advance(40);
  }
  assert.equal(tries(), before);
  assert.equal(node.container("web", "lacking").state?.waiting?.reason, "ErrImagePull");
  assert.ok(node.container("web", "main").ready);
  await node.advance(60_000);
  assert.ok(tries() - before >= 4 && tries() - before <= 8, `${tries() - before} tries in a minute`);
});

test("a runtime that answers too late has not made things twice", async () => {
  await using node = await TestEngine.start();
  for (const operation of ["runPodSandbox", "createContainer", "startContainer"] as const) {
    node.runtime.faults.add({
      operation,
      at: "after",
      times: 1,
      effect: { type: "error", code: "DeadlineExceeded", message: "too late" },
    });
  }
  await node.want(enginePod("web"));
  await node.until("it runs", () => node.phase("web") === "Running", 120_000);
  await node.advance(60_000);
  assert.deepEqual(node.running(), ["web/main"]);
  assert.equal(node.runtime.sandboxes().filter(({ state }) => state === "ready").length, 1);
  assert.equal(node.container("web", "main").restartCount, 0);
});

function spoiltEvents(
  spoil: (hint: RuntimeEvent) => readonly RuntimeEvent[],
): NonNullable<TestEngineOptions["runtimeEvents"]> {
  return (runtimeEvents) => ({
    get source() {
      return runtimeEvents.source;
    },
    async *subscribe(signal) {
      for await (const hint of runtimeEvents.subscribe(signal)) yield* spoil(hint);
    },
  });
}

test("what the runtime once said wrongly of a container keeps no pod from running", async () => {
  const wrong = { name: "odd", left: 0 };
  await using node = await TestEngine.start({
    source: "api",
    answers: (runtime) => ({
      ...runtime,
      async containerStatus(...words) {
        const answer = structuredClone(await runtime.containerStatus(...words));
        if (wrong.left-- > 0 && answer.status?.metadata) answer.status.metadata.name = wrong.name;
        return answer;
      },
    }),
  });
  wrong.left = 1;
  await node.want(enginePod("web"));
  await node.until("it runs", () => node.phase("web") === "Running", 120_000);
  assert.deepEqual(node.running(), ["web/main"]);
});

test("a container's number that the runtime once said wrongly does not keep it from starting again", async () => {
  let isWrong = true;
  await using node = await TestEngine.start({
    source: "api",
    answers: (runtime) => ({
      ...runtime,
      async containerStatus(...words) {
        const answer = structuredClone(await runtime.containerStatus(...words));
        const { status } = answer;
        if (isWrong && status?.metadata?.attempt === 1 && status.finishedAt > 0n) {
          isWrong = false;
          status.annotations["io.kubernetes.container.restartCount"] = "0";
        }
        return answer;
      },
    }),
  });
  node.runtime.behave("main", exitsAfter(1_000, 1));
  await node.want(enginePod("web"));
  await node.until("it has started again", () => node.container("web", "main").restartCount >= 3);
  assert.equal(isWrong, false);
});
