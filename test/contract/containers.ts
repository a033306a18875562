import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ContainerState, UpdateContainerResourcesRequest } from "../../src/connections/cri/index.ts";
import { fails, type Pods } from "./pods.ts";

const untilStopped = ["sleep", "1000"];

export function containerContract(pods: Pods): void {
  test("a container lives: created, running, exited, in this order of times", async () => {
    const pod = await pods.run();
    const id = await pods.create(pod, ["sh", "-c", "sleep 0.2"]);
    assert.match(id, /^[0-9a-f]{64}$/);
    const created = await pods.status(id);
    assert.equal(created.state, ContainerState.CONTAINER_CREATED);
    assert.deepEqual([created.startedAt, created.finishedAt], [0n, 0n]);
    await pods.runtime.startContainer({ containerId: id });
    const running = await pods.status(id);
    assert.equal(running.state, ContainerState.CONTAINER_RUNNING);
    assert.ok(running.startedAt >= created.createdAt && running.finishedAt === 0n);
    const exited = await pods.untilExited(id);
    assert.deepEqual([exited.exitCode, exited.reason, exited.message], [0, "Completed", ""]);
    assert.equal(exited.startedAt, running.startedAt);
    assert.ok(exited.finishedAt > exited.startedAt);
    await pods.remove(pod);
  });

  test("status and list tell what it was made from", async () => {
    const pod = await pods.run();
    const config = pods.containerConfig(untilStopped);
    const id = await pods.start(pod, untilStopped);
    const status = await pods.status(id);
    assert.deepEqual(status.metadata, config.metadata);
    assert.deepEqual(status.labels, config.labels);
    assert.deepEqual(status.annotations, config.annotations);
    assert.equal(status.logPath, join(pod.config.logDirectory, "main/0.log"));
    assert.equal(status.resources?.linux?.cpuShares, 2n);
    assert.ok(status.image?.image !== "" && status.imageRef !== "");
    const { containers } = await pods.runtime.listContainers({ filter: undefined });
    const listed = containers.find((container) => container.id === id);
    assert.deepEqual(
      [listed?.podSandboxId, listed?.metadata, listed?.labels, listed?.annotations, listed?.createdAt, listed?.state],
      [pod.id, config.metadata, config.labels, config.annotations, status.createdAt, ContainerState.CONTAINER_RUNNING],
    );
    assert.equal(listed?.image?.image, config.image?.image, "the image as it was asked for");
    const { image } = await pods.images.imageStatus({ image: config.image, verbose: false });
    assert.equal(listed?.imageRef, image?.id);
    await pods.remove(pod);
  });

  for (const { script, exitCode, reason } of [
    { script: "exit 0", exitCode: 0, reason: "Completed" },
    { script: "exit 7", exitCode: 7, reason: "Error" },
  ]) {
    test(`"${script}" ends as ${reason} with ${exitCode}`, async () => {
      const pod = await pods.run();
      const exited = await pods.untilExited(await pods.start(pod, ["sh", "-c", script]));
      assert.deepEqual([exited.exitCode, exited.reason], [exitCode, reason]);
      await pods.remove(pod);
    });
  }

  test("a program that is not there fails the start and leaves an exited container that says why", async () => {
    const pod = await pods.run();
    const id = await pods.create(pod, ["/no/such/program"]);
    await assert.rejects(pods.runtime.startContainer({ containerId: id }), fails("Unknown", /\/no\/such\/program/));
    const status = await pods.status(id);
    assert.deepEqual(
      [status.state, status.exitCode, status.reason],
      [ContainerState.CONTAINER_EXITED, 128, "StartError"],
    );
    assert.match(status.message, /no such file or directory/);
    assert.equal(status.startedAt, 0n);
    assert.ok(status.finishedAt >= status.createdAt);
    await pods.remove(pod);
  });

  test("a container is started once", async () => {
    const pod = await pods.run();
    const id = await pods.start(pod, ["sh", "-c", "sleep 0.2"]);
    await assert.rejects(pods.runtime.startContainer({ containerId: id }), fails("Unknown", /CONTAINER_RUNNING/));
    await pods.untilExited(id);
    await assert.rejects(pods.runtime.startContainer({ containerId: id }), fails("Unknown", /CONTAINER_EXITED/));
    await pods.remove(pod);
  });

  test("a container name is taken until the container is removed; attempts stand side by side", async () => {
    const pod = await pods.run();
    const name = pod.config.metadata?.name;
    const first = await pods.start(pod, ["true"]);
    await pods.untilExited(first);
    const reserved = new RegExp(
      `failed to reserve container name "main_${name}_contract_uid-${name}_0": .* is reserved for "${first}"`,
    );
    await assert.rejects(pods.create(pod, ["true"]), fails("Unknown", reserved));
    const second = await pods.start(pod, untilStopped, { attempt: 1 });
    assert.deepEqual(await pods.listedIds({ podSandboxId: pod.id }), [first, second].sort());
    assert.ok((await pods.status(second)).createdAt > (await pods.status(first)).createdAt);
    await pods.runtime.removeContainer({ containerId: first });
    await pods.create(pod, ["true"]);
    await pods.remove(pod);
  });

  test("containers need a sandbox that runs and an image that is there", async () => {
    const pod = await pods.run();
    const { runtime } = pods;
    const config = pods.containerConfig(["true"]);
    const nowhere = { podSandboxId: "nope", config, sandboxConfig: pod.config };
    await assert.rejects(runtime.createContainer(nowhere), fails("NotFound"));
    const image = { image: "localhost/no/such:image", annotations: {}, userSpecifiedImage: "", runtimeHandler: "" };
    const imageless = { podSandboxId: pod.id, config: { ...config, image }, sandboxConfig: pod.config };
    await assert.rejects(
      runtime.createContainer(imageless),
      fails("NotFound", /failed to resolve image "localhost\/no\/such:image"/),
    );
    const nameless = { podSandboxId: pod.id, config: { ...config, metadata: undefined }, sandboxConfig: pod.config };
    await assert.rejects(runtime.createContainer(nameless), fails("Unknown", /must include metadata/));
    await pods.create(pod, ["true"]);
    await runtime.stopPodSandbox({ podSandboxId: pod.id });
    await assert.rejects(pods.create(pod, ["true"], { attempt: 1 }), fails("NotFound"));
    await pods.remove(pod);
  });

  test("containers are found by id, prefix of the id, sandbox, state and labels", async () => {
    const [a, b] = [await pods.run(), await pods.run()];
    const running = await pods.start(a, untilStopped, { labels: { pick: "running" } });
    const exited = await pods.start(a, ["true"], { attempt: 1, labels: { pick: "exited" } });
    const created = await pods.create(b, ["true"], { labels: { pick: "created" } });
    await pods.untilExited(exited);
    const all = [running, exited, created];
    const mine = async (filter: Parameters<Pods["listedIds"]>[0]) =>
      (await pods.listedIds(filter)).filter((id) => all.includes(id));
    assert.deepEqual(await mine({}), all.toSorted());
    assert.deepEqual(await mine({ id: running }), [running]);
    assert.deepEqual(await mine({ id: running.slice(0, 20) }), [running]);
    assert.deepEqual(await mine({ id: "nope" }), []);
    assert.deepEqual(await mine({ podSandboxId: a.id }), [running, exited].sort());
    assert.deepEqual(await mine({ state: { state: ContainerState.CONTAINER_RUNNING } }), [running]);
    assert.deepEqual(await mine({ state: { state: ContainerState.CONTAINER_EXITED } }), [exited]);
    assert.deepEqual(await mine({ state: { state: ContainerState.CONTAINER_CREATED } }), [created]);
    assert.deepEqual(await mine({ labelSelector: { role: "test", pick: "exited" } }), [exited]);
    assert.deepEqual(await mine({ labelSelector: { role: "other" } }), []);
    assert.equal((await pods.status(running.slice(0, 20))).id, running);
    await Promise.all([pods.remove(a), pods.remove(b)]);
  });

  test("unknown containers: status, start and update say NotFound, removing is fine", async () => {
    const { runtime } = pods;
    await assert.rejects(pods.status("nope"), fails("NotFound"));
    await assert.rejects(pods.status(""), fails("Unknown"));
    await assert.rejects(runtime.startContainer({ containerId: "nope" }), fails("NotFound"));
    const update = UpdateContainerResourcesRequest.fromPartial({ containerId: "nope", linux: { cpuShares: 3n } });
    await assert.rejects(runtime.updateContainerResources(update), fails("NotFound"));
    await assert.rejects(runtime.containerStats({ containerId: "nope" }), fails("NotFound"));
    await runtime.removeContainer({ containerId: "nope" });
  });

  test("new resources show in the status; what is not given stays", async () => {
    const pod = await pods.run();
    const id = await pods.start(pod, untilStopped, { cpuShares: 64n });
    const update = async (linux: { cpuShares?: bigint; cpuQuota?: bigint; cpuPeriod?: bigint }) => {
      await pods.runtime.updateContainerResources(
        UpdateContainerResourcesRequest.fromPartial({ containerId: id, linux }),
      );
      const resources = (await pods.status(id)).resources?.linux;
      return [resources?.cpuShares, resources?.cpuQuota, resources?.cpuPeriod];
    };
    assert.deepEqual(await update({ cpuShares: 128n }), [128n, 0n, 0n]);
    assert.deepEqual(await update({ cpuQuota: 20_000n, cpuPeriod: 100_000n }), [128n, 20_000n, 100_000n]);
    await pods.remove(pod);
  });

  test("a running container has usage, and a pod has that of its containers", async () => {
    const pod = await pods.run();
    const id = await pods.start(pod, untilStopped);
    const { stats } = await pods.runtime.containerStats({ containerId: id });
    assert.equal(stats?.attributes?.id, id);
    assert.ok((stats?.memory?.workingSetBytes?.value ?? 0n) > 0n);
    assert.ok((stats?.cpu?.timestamp ?? 0n) > 0n);
    const { stats: sandbox } = await pods.runtime.podSandboxStats({ podSandboxId: pod.id });
    assert.deepEqual(
      sandbox?.linux?.containers.map(({ attributes }) => attributes?.id),
      [id],
    );
    const filter = { id: "", podSandboxId: pod.id, labelSelector: {} };
    const { stats: listed } = await pods.runtime.listContainerStats({ filter });
    assert.deepEqual(
      listed.map(({ attributes }) => attributes?.id),
      [id],
    );
    await pods.remove(pod);
  });

  test("a file written under a mount is there on the node: the termination message", async () => {
    const pod = await pods.run();
    const hostPath = join(pod.config.logDirectory, "message");
    await writeFile(hostPath, "");
    const mounts = [{ containerPath: "/dev/termination-log", hostPath }];
    const id = await pods.start(pod, ["sh", "-c", "echo goodbye > /dev/termination-log; exit 3"], { mounts });
    assert.equal((await pods.untilExited(id)).exitCode, 3);
    assert.equal(await readFile(hostPath, "utf8"), "goodbye\n");
    const reported = (await pods.status(id)).mounts.map(({ containerPath, hostPath }) => ({ containerPath, hostPath }));
    assert.deepEqual(reported, mounts);
    await pods.remove(pod);
  });
}
