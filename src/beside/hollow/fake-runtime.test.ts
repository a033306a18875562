import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import {
  CgroupDriver,
  ContainerConfig,
  ContainerEventType,
  ContainerState,
  CriError,
  ImageSpec,
  NamespaceMode,
  PodSandboxConfig,
  PodSandboxState,
  PullImageRequest,
} from "../../connections/cri/index.ts";
import { type Behaviour, does, exitsAfter, failsToStart, ignoresTerm, runsForever } from "./behaviour.ts";
import { FakeRuntime, type FakeRuntimeOptions } from "./fake-runtime.ts";

function make(options: Partial<FakeRuntimeOptions> = {}) {
  const clock = new FakeClock();
  const fake = new FakeRuntime({ clock, ...options });
  fake.imageStore.preload("app");
  const { runtime } = fake;
  let count = 0;
  const config = (uid = `uid-${++count}`, attempt = 0) =>
    PodSandboxConfig.fromPartial({
      metadata: { name: uid, namespace: "ns", uid, attempt },
      linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } },
    });
  const run = async (uid?: string, attempt = 0) =>
    (await runtime.runPodSandbox({ config: config(uid, attempt), runtimeHandler: "" })).podSandboxId;
  const create = async (podSandboxId: string, name = "main", attempt = 0) =>
    (
      await runtime.createContainer({
        podSandboxId,
        config: ContainerConfig.fromPartial({ metadata: { name, attempt }, image: { image: "app" } }),
        sandboxConfig: undefined,
      })
    ).containerId;
  const start = async (podSandboxId: string, behaviour: Behaviour, name = "main", attempt = 0) => {
    fake.behave(name, behaviour);
    const containerId = await create(podSandboxId, name, attempt);
    await runtime.startContainer({ containerId });
    return containerId;
  };
  const status = async (containerId: string) => {
    const { status } = await runtime.containerStatus({ containerId, verbose: false });
    assert.ok(status !== undefined);
    return status;
  };
  return { clock, fake, runtime, config, run, create, start, status };
}

const code = (wanted: string) => (error: unknown) => error instanceof CriError && error.code === wanted;

test("processes live by the clock: they exit when their time has come, not before", async () => {
  const { clock, run, start, status } = make();
  const id = await start(await run(), exitsAfter(5_000, 3));
  await clock.advance(4_999);
  assert.equal((await status(id)).state, ContainerState.CONTAINER_RUNNING);
  await clock.advance(1);
  const exited = await status(id);
  assert.deepEqual([exited.exitCode, exited.reason], [3, "Error"]);
  assert.equal(exited.finishedAt / 1_000_000n, BigInt(clock.now()));
  assert.equal(clock.pendingTimers, 0);
});

test("stop: grace is waited for under the clock, then the process is killed", async () => {
  const { clock, runtime, run, start, status } = make();
  const sandbox = await run();
  const stubborn = await start(sandbox, ignoresTerm(), "stubborn");
  const polite = await start(sandbox, runsForever(2_000), "polite");
  const stops = Promise.all(
    [stubborn, polite].map((containerId) => runtime.stopContainer({ containerId, timeout: 30n })),
  );
  await clock.advance(2_000);
  assert.equal((await status(polite)).exitCode, 0);
  await clock.advance(27_999);
  assert.equal((await status(stubborn)).state, ContainerState.CONTAINER_RUNNING);
  await clock.advance(1);
  await stops;
  assert.equal((await status(stubborn)).exitCode, 137);
  assert.equal(clock.pendingTimers, 0);
});

test("instances of a name behave one after the other, the last for the rest", async () => {
  const { fake, runtime, run, create, status } = make();
  const sandbox = await run();
  fake.behave("main", failsToStart("no such file"), exitsAfter(0, 1), runsForever());
  const outcomes: [number, string][] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    const containerId = await create(sandbox, "main", attempt);
    await runtime.startContainer({ containerId }).catch((error: unknown) => assert.ok(code("Unknown")(error)));
    await settle();
    const { state, reason } = await status(containerId);
    outcomes.push([state, reason]);
  }
  const { CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
  assert.deepEqual(
    outcomes.map(([state]) => state),
    [CONTAINER_EXITED, CONTAINER_RUNNING, CONTAINER_RUNNING, CONTAINER_RUNNING],
  );
  assert.equal(outcomes[0]?.[1], "StartError");
});

test("a test ends containers by name: exit, and out of memory", async () => {
  const { fake, run, start, status } = make();
  const sandbox = await run();
  const first = await start(sandbox, runsForever(), "web");
  const second = await start(sandbox, runsForever(), "hog");
  fake.exit("web", 9);
  fake.oomKill("hog");
  assert.deepEqual([(await status(first)).exitCode, (await status(first)).reason], [9, "Error"]);
  assert.deepEqual([(await status(second)).exitCode, (await status(second)).reason], [137, "OOMKilled"]);
  assert.throws(() => fake.exit("web", 1), /no running container is called "web"/);
});

test("a sandbox whose own process dies is not ready; its containers stay", async () => {
  const { fake, runtime, run, start, status } = make();
  const sandbox = await run();
  const id = await start(sandbox, runsForever());
  fake.killSandbox(sandbox);
  const { items } = await runtime.listPodSandbox({ filter: undefined });
  assert.equal(items[0]?.state, PodSandboxState.SANDBOX_NOTREADY);
  assert.equal((await status(id)).state, ContainerState.CONTAINER_RUNNING);
});

test("without network: the condition says so, pods with their own network fail, others run; an IP returns", async () => {
  const { fake, runtime, config, run } = make({ podCidr: "10.0.0.0/30" });
  fake.setNetworkReady(false);
  const { status } = await runtime.status({ verbose: false });
  const network = status?.conditions.find(({ type }) => type === "NetworkReady");
  assert.deepEqual(network, {
    type: "NetworkReady",
    status: false,
    reason: "NetworkPluginNotReady",
    message: "Network plugin returns error: cni plugin not initialized",
  });
  await assert.rejects(run("a"), { message: /failed to setup network for sandbox ".*": cni plugin not initialized/ });
  const hostNetwork = PodSandboxConfig.fromPartial({
    ...config("host"),
    linux: { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } },
  });
  await runtime.runPodSandbox({ config: hostNetwork, runtimeHandler: "" });
  fake.setNetworkReady(true);
  const only = await run("a");
  await assert.rejects(run("b"), { message: /no IP addresses available/ });
  await runtime.stopPodSandbox({ podSandboxId: only });
  await run("b");
});

test("faults: an error for one pod only, as often as asked", async () => {
  const { fake, run } = make();
  const effect = { type: "error", code: "Unknown", message: "disk full" } as const;
  fake.faults.add({ operation: "runPodSandbox", podUid: "bad", effect, times: 2 });
  await assert.rejects(run("bad"), { code: "Unknown", message: "disk full" });
  await run("good");
  await assert.rejects(run("bad"), { message: "disk full" });
  await run("bad");
  assert.equal(fake.callCount("runPodSandbox"), 4);
});

test("faults: a delay is served under the clock, a hang until it is removed or the deadline passes", async () => {
  const { clock, fake, runtime } = make({ requestTimeoutMs: 60_000 });
  const version = () =>
    runtime.version({ version: "" }).then(
      () => "answered",
      (error: CriError) => error.code,
    );
  fake.faults.add({ operation: "version", effect: { type: "delay", ms: 1_000 }, times: 1 });
  const delayed = version();
  await clock.advance(1_000);
  assert.equal(await delayed, "answered");
  const hang = fake.faults.add({ operation: "version", effect: { type: "hang" } });
  const late = version();
  await clock.advance(59_999);
  const freed = version();
  await clock.advance(1);
  assert.equal(await late, "DeadlineExceeded");
  hang.remove();
  assert.equal(await freed, "answered");
  assert.equal(clock.pendingTimers, 0);
});

test("a caller that gives up RunPodSandbox finds its name taken until the runtime lets go of it", async () => {
  const { fake, config, runtime, run } = make();
  const stuck = fake.faults.add({ operation: "runPodSandbox", at: "during", effect: { type: "hang" } });
  const giveUp = new AbortController();
  const first = runtime.runPodSandbox({ config: config("u"), runtimeHandler: "" }, { signal: giveUp.signal });
  const outcome = assert.rejects(first, (error) => error === giveUp.signal.reason);
  await settle();
  giveUp.abort();
  await outcome;
  await assert.rejects(run("u"), { message: /name "u_ns_u_0" is reserved for/ });
  assert.deepEqual((await runtime.listPodSandbox({ filter: undefined })).items, [], "not visible before it is done");
  stuck.remove();
  await settle();
  await run("u");
});

test("an answer that gets lost: the work is done all the same", async () => {
  const { clock, fake, run } = make({ requestTimeoutMs: 60_000 });
  fake.faults.add({ operation: "runPodSandbox", at: "after", effect: { type: "hang" }, times: 1 });
  const lost = assert.rejects(run("u"), code("DeadlineExceeded"));
  await clock.advance(120_000);
  await lost;
  assert.equal(fake.sandboxes().length, 1);
});

test("a killed runtime fails calls in flight and to come; containers outlive it", async () => {
  const { clock, fake, runtime, run, start, status } = make();
  const sandbox = await run();
  const stubborn = await start(sandbox, ignoresTerm(), "stubborn");
  const brief = await start(sandbox, exitsAfter(1_000, 4), "brief");
  const stop = assert.rejects(runtime.stopContainer({ containerId: stubborn, timeout: 30n }), code("Unavailable"));
  await settle();
  fake.kill();
  await stop;
  await assert.rejects(runtime.version({ version: "" }), code("Unavailable"));
  await clock.advance(2_000);
  fake.start("everything");
  assert.equal((await status(stubborn)).state, ContainerState.CONTAINER_RUNNING);
  assert.equal((await status(brief)).exitCode, 4);
});

test("after a reboot the records are there and nothing runs; after losing its state the runtime knows nothing", async () => {
  const { fake, runtime, run, start, status } = make();
  const sandbox = await run("u");
  const id = await start(sandbox, runsForever());
  fake.restart("records");
  assert.deepEqual([(await status(id)).exitCode, (await status(id)).reason], [255, "Unknown"]);
  const { items } = await runtime.listPodSandbox({ filter: undefined });
  assert.deepEqual(
    items.map(({ state }) => state),
    [PodSandboxState.SANDBOX_NOTREADY],
  );
  fake.restart("nothing");
  assert.deepEqual((await runtime.listPodSandbox({ filter: undefined })).items, []);
  assert.deepEqual(fake.imageStore.names(), []);
  await run("u");
});

test("events: one per change with the pod's statuses; killing the runtime breaks the stream", async () => {
  const { fake, runtime, run, start } = make({ events: "offered" });
  const seen: [ContainerEventType, string][] = [];
  const reading = (async () => {
    for await (const event of runtime.getContainerEvents({})) {
      assert.equal(event.podSandboxStatus?.metadata?.uid, "u");
      seen.push([event.containerEventType, event.containerId]);
    }
  })();
  await settle();
  const sandbox = await run("u");
  const id = await start(sandbox, runsForever());
  fake.exit(id, 0);
  await runtime.removePodSandbox({ podSandboxId: sandbox });
  await settle();
  const { CONTAINER_CREATED_EVENT, CONTAINER_STARTED_EVENT, CONTAINER_STOPPED_EVENT, CONTAINER_DELETED_EVENT } =
    ContainerEventType;
  assert.deepEqual(seen, [
    [CONTAINER_CREATED_EVENT, sandbox],
    [CONTAINER_STARTED_EVENT, sandbox],
    [CONTAINER_CREATED_EVENT, id],
    [CONTAINER_STARTED_EVENT, id],
    [CONTAINER_STOPPED_EVENT, id],
    [CONTAINER_DELETED_EVENT, id],
    [CONTAINER_STOPPED_EVENT, sandbox],
    [CONTAINER_DELETED_EVENT, sandbox],
  ]);
  const broken = assert.rejects(reading, code("Unavailable"));
  fake.kill();
  await broken;
});

test("an older runtime has no events, no RuntimeConfig, no resize of sandboxes; a newer one tells its cgroup driver", async () => {
  const { runtime } = make();
  const iterator = runtime.getContainerEvents({})[Symbol.asyncIterator]();
  await assert.rejects(iterator.next(), code("Unimplemented"));
  await assert.rejects(runtime.runtimeConfig({}), code("Unimplemented"));
  const resize = { podSandboxId: "x", overhead: undefined, resources: undefined };
  await assert.rejects(runtime.updatePodSandboxResources(resize), code("Unimplemented"));
  const newer = make({ cgroupDriver: CgroupDriver.SYSTEMD }).runtime;
  assert.deepEqual(await newer.runtimeConfig({}), { linux: { cgroupDriver: CgroupDriver.SYSTEMD } });
});

test("exec: scripted answers, else the shell; a container that exits ends its commands", async () => {
  const { clock, fake, runtime, run, start } = make({ unknownPrograms: "failToStart" });
  const containerId = await start(await run(), runsForever());
  fake.onExec(([program]) => {
    if (program === "probe") return { stdout: "ok", stderr: "hm", exitCode: 2, afterMs: 500 };
    return program === "hang" ? { afterMs: "forever" } : undefined;
  });
  const exec = (cmd: string[], timeout = 0n) => runtime.execSync({ containerId, cmd, timeout });
  const probe = exec(["probe"]);
  await clock.advance(500);
  const { stdout, stderr, exitCode } = await probe;
  assert.deepEqual([stdout.toString(), stderr.toString(), exitCode], ["ok", "hm", 2]);
  assert.equal((await exec(["sh", "-c", "exit 4"])).exitCode, 4);
  const late = assert.rejects(exec(["hang"], 3n), { code: "DeadlineExceeded", message: /timeout 3s exceeded/ });
  await clock.advance(3_000);
  await late;
  const orphan = exec(["hang"]);
  await settle();
  fake.exit(containerId, 0);
  assert.equal((await orphan).exitCode, 137);
  assert.equal(clock.pendingTimers, 0);
});

test("images: pulled with time and credentials, found, counted, removed", async () => {
  const { clock, fake } = make({ unknownImages: "absent" });
  const { images, imageStore } = fake;
  imageStore.publish({ name: "slow", pullMs: 5_000, sizeBytes: 7 });
  imageStore.publish({ name: "reg.example/private:1", credentials: { username: "u", password: "p:w" }, user: "1000" });
  imageStore.publish({ name: "broken", failure: { code: "Unavailable", message: "503" } });
  const pull = (image: string, auth?: { username?: string; password?: string; auth?: string }) =>
    images.pullImage(PullImageRequest.fromPartial({ image: { image }, auth }));
  const slow = pull("slow");
  await clock.advance(5_000);
  const { imageRef } = await slow;
  const found = (name: string) => images.imageStatus({ image: ImageSpec.fromPartial({ image: name }), verbose: false });
  const { image } = await found("docker.io/library/slow:latest");
  assert.deepEqual([image?.id, image?.size], [imageRef, 7n]);
  await assert.rejects(pull("nowhere"), {
    code: "NotFound",
    message: /failed to pull and unpack image "docker.io\/library\/nowhere:latest"/,
  });
  await assert.rejects(pull("broken"), { code: "Unavailable", message: /503/ });
  await assert.rejects(pull("reg.example/private:1"), { code: "Unknown", message: /pull access denied/ });
  await pull("reg.example/private:1", { username: "u", password: "p:w" });
  await pull("reg.example/private:1", { auth: Buffer.from("u:p:w").toString("base64") });
  assert.equal((await found("reg.example/private:1")).image?.uid?.value, 1000n);
  assert.deepEqual(imageStore.names(), [
    "docker.io/library/app:latest",
    "docker.io/library/slow:latest",
    "reg.example/private:1",
  ]);
  await images.removeImage({ image: ImageSpec.fromPartial({ image: imageRef }) });
  assert.equal((await found("slow")).image, undefined);
});

test("a cancelled pull stops waiting and leaves no image", async () => {
  const { clock, fake } = make();
  fake.imageStore.publish({ name: "slow", pullMs: 5_000 });
  const giveUp = new AbortController();
  const request = PullImageRequest.fromPartial({ image: { image: "slow" } });
  const pull = fake.images.pullImage(request, { signal: giveUp.signal });
  const outcome = assert.rejects(pull, (error) => error === giveUp.signal.reason);
  await clock.advance(1_000);
  giveUp.abort();
  await outcome;
  await clock.advance(10_000);
  assert.deepEqual(fake.imageStore.names(), ["docker.io/library/app:latest"]);
  assert.equal(clock.pendingTimers, 0);
});

test("usage grows with the clock while a container runs, and ends with it", async () => {
  const { clock, fake, runtime, run, start } = make();
  const usage = { cpuMillicores: 250, memoryBytes: 1_000 };
  const containerId = await start(await run(), { ...does([{ do: "sleepForever" }]), usage } as Behaviour);
  await clock.advance(4_000);
  const { stats } = await runtime.containerStats({ containerId });
  const used = Number(stats?.cpu?.usageCoreNanoSeconds?.value ?? 0n) / 1e9;
  assert.equal(used.toFixed(3), "1.000");
  assert.equal(stats?.memory?.workingSetBytes?.value, 1_000n);
  fake.exit(containerId, 0);
  assert.equal((await runtime.containerStats({ containerId })).stats?.cpu, undefined);
});

test("what is created later sorts later, even within one instant of the clock", async () => {
  const { runtime, run } = make();
  const ids = [await run(), await run(), await run()];
  const { items } = await runtime.listPodSandbox({ filter: undefined });
  const byAge = items.toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1)).map(({ id }) => id);
  assert.deepEqual(byAge, ids);
});
