import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerState } from "../../src/connections/cri/index.ts";
import { fails, type Pods } from "./pods.ts";

const untilStopped = ["sleep", "1000"];
const ignoring = ["sh", "-c", "trap '' TERM; echo ready; while true; do sleep 1; done"];
const obeying = ["sh", "-c", "trap 'exit 5' TERM; echo ready; sleep 1000 & wait"];

export function stopContract(pods: Pods): void {
  test("stopping asks first: a program that obeys ends with its own code, well within the grace", async () => {
    const pod = await pods.run();
    const id = await pods.startListening(pod, obeying);
    const startedAt = performance.now();
    await pods.runtime.stopContainer({ containerId: id, timeout: 120n });
    assert.ok(performance.now() - startedAt < 60_000);
    const { state, exitCode, reason } = await pods.status(id);
    assert.deepEqual([state, exitCode, reason], [ContainerState.CONTAINER_EXITED, 5, "Error"]);
    await pods.remove(pod);
  });

  test("a program that does not obey is killed when the grace has passed", async () => {
    const pod = await pods.run();
    const id = await pods.startListening(pod, ignoring);
    const startedAt = performance.now();
    await pods.runtime.stopContainer({ containerId: id, timeout: 1n });
    assert.ok(performance.now() - startedAt >= 990, "the grace is waited for");
    const { state, exitCode, reason } = await pods.status(id);
    assert.deepEqual([state, exitCode, reason], [ContainerState.CONTAINER_EXITED, 137, "Error"]);
    await pods.remove(pod);
  });

  test("no grace kills at once", async () => {
    const pod = await pods.run();
    const id = await pods.startListening(pod, obeying);
    await pods.runtime.stopContainer({ containerId: id, timeout: 0n });
    assert.equal((await pods.status(id)).exitCode, 137);
    await pods.remove(pod);
  });

  test("a later stop with a shorter grace cuts an earlier one short", async () => {
    const pod = await pods.run();
    const id = await pods.startListening(pod, ignoring);
    const patient = pods.runtime.stopContainer({ containerId: id, timeout: 3600n });
    await pods.runtime.stopContainer({ containerId: id, timeout: 1n });
    await patient;
    assert.equal((await pods.status(id)).exitCode, 137);
    await pods.remove(pod);
  });

  test("giving up a stop leaves the container as it is", async () => {
    const pod = await pods.run();
    const id = await pods.startListening(pod, ignoring);
    const giveUp = new AbortController();
    const stop = pods.runtime.stopContainer({ containerId: id, timeout: 3600n }, { signal: giveUp.signal });
    const outcome = assert.rejects(stop, (error) => error === giveUp.signal.reason);
    await pods.runtime.execSync({ containerId: id, cmd: ["sleep", "0.2"], timeout: 0n });
    giveUp.abort();
    await outcome;
    assert.equal((await pods.status(id)).state, ContainerState.CONTAINER_RUNNING);
    await pods.remove(pod);
  });

  test("stopping what does not run is fine, what is unknown is NotFound", async () => {
    const pod = await pods.run();
    const { runtime } = pods;
    const id = await pods.create(pod, ["true"]);
    await runtime.stopContainer({ containerId: id, timeout: 1n });
    assert.equal((await pods.status(id)).state, ContainerState.CONTAINER_CREATED);
    await runtime.startContainer({ containerId: id });
    await pods.untilExited(id);
    await runtime.stopContainer({ containerId: id, timeout: 1n });
    assert.equal((await pods.status(id)).exitCode, 0);
    await assert.rejects(runtime.stopContainer({ containerId: "nope", timeout: 1n }), fails("NotFound"));
    await pods.remove(pod);
  });

  test("removing a running container kills it, twice is fine", async () => {
    const pod = await pods.run();
    const id = await pods.startListening(pod, ignoring);
    await pods.runtime.removeContainer({ containerId: id });
    await pods.runtime.removeContainer({ containerId: id });
    await assert.rejects(pods.status(id), fails("NotFound"));
    assert.deepEqual(await pods.listedIds({ podSandboxId: pod.id }), []);
    await pods.remove(pod);
  });

  test("stopping a sandbox kills its containers but keeps them for reading", async () => {
    const pod = await pods.run();
    const id = await pods.start(pod, untilStopped);
    await pods.runtime.stopPodSandbox({ podSandboxId: pod.id });
    const { state, exitCode, reason } = await pods.status(id);
    assert.deepEqual([state, exitCode, reason], [ContainerState.CONTAINER_EXITED, 137, "Error"]);
    await pods.remove(pod);
  });

  test("removing a sandbox that runs removes all of it", async () => {
    const pod = await pods.run();
    const running = await pods.start(pod, untilStopped);
    await pods.create(pod, ["true"], { attempt: 1 });
    await pods.remove(pod);
    await assert.rejects(pods.status(running), fails("NotFound"));
    assert.deepEqual(await pods.listedIds({ podSandboxId: pod.id }), []);
  });
}
