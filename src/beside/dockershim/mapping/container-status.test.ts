import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerFilter, ContainerState, ContainerStatus } from "../../../connections/cri/index.ts";
import { inspectedContainer, listedContainer } from "../engine/answers.ts";
import { criContainer, criContainerStatus, fitsContainer, imageRefOf, lifeOf } from "./container-status.ts";

const never = "0001-01-01T00:00:00Z";
const labels = { "io.kubernetes.docker.type": "container", "io.nodelet.docker.created-at": "1700000000000000001" };

function inspected(state: object) {
  return inspectedContainer({ Id: "ab", Name: "/k8s_main_web_team_u_2", Config: { Labels: labels }, State: state });
}

for (const { name, state, want } of [
  { name: "made", state: { StartedAt: never, FinishedAt: never }, want: { step: "created" } },
  {
    name: "running",
    state: { Running: true, StartedAt: "2024-01-01T00:00:00.000000005Z", FinishedAt: never },
    want: { step: "running", startedAt: 1704067200000000005n },
  },
  {
    name: "paused still runs",
    state: { Status: "paused", Running: true, Paused: true, StartedAt: "2024-01-01T00:00:00Z" },
    want: { step: "running", startedAt: 1704067200000000000n },
  },
  {
    name: "a short life that seems to end before it begins",
    state: { StartedAt: "2024-01-01T00:00:01Z", FinishedAt: "2024-01-01T00:00:00.9994Z", ExitCode: 0 },
    want: {
      step: "exited",
      startedAt: 1704067201000000000n,
      finishedAt: 1704067201000000001n,
      exitCode: 0,
      reason: "Completed",
      message: "",
    },
  },
  {
    name: "killed for memory, whatever its code",
    state: { StartedAt: "2024-01-01T00:00:00Z", FinishedAt: "2024-01-01T00:00:01Z", ExitCode: 0, OOMKilled: true },
    want: {
      step: "exited",
      startedAt: 1704067200000000000n,
      finishedAt: 1704067201000000000n,
      exitCode: 0,
      reason: "OOMKilled",
      message: "",
    },
  },
  {
    name: "could not start",
    state: {
      Status: "created",
      StartedAt: never,
      FinishedAt: never,
      ExitCode: 127,
      Error: "no such file or directory",
    },
    want: {
      step: "exited",
      startedAt: 0n,
      finishedAt: 1700000000000000001n,
      exitCode: 128,
      reason: "StartError",
      message: "no such file or directory",
    },
  },
]) {
  test(`life of a container: ${name}`, () => assert.deepEqual(lifeOf(inspected(state)), want));
}

test("a list and a status tell the same, and hide what is ours", () => {
  const listed = listedContainer({
    Id: "ab",
    Names: ["/k8s_main_web_team_u_2"],
    Labels: { ...labels, app: "x", "annotation.note": "n" },
    State: "exited",
    Created: 7,
  });
  const message = criContainer(listed, "exited");
  assert.deepEqual(message?.labels, { app: "x" });
  assert.deepEqual(message?.annotations, { note: "n" });
  assert.deepEqual(message?.metadata, { name: "main", attempt: 2 });
  assert.equal(message?.createdAt, 1700000000000000001n);
  const status = criContainerStatus(inspected({ Running: true, StartedAt: "2024-01-01T00:00:00Z" }), undefined);
  assert.deepEqual([status.createdAt, status.state], [1700000000000000001n, ContainerState.CONTAINER_RUNNING]);
  assert.ok(
    message !== undefined &&
      !fitsContainer(message, ContainerFilter.fromPartial({ labelSelector: { constructor: "x" } })),
  );
});

test("an image is named by its digest where it was pulled, else by its id", () => {
  const image = { id: "sha256:1", tags: [], digests: ["repo@sha256:2"], size: 1, user: "", labels: {} };
  assert.equal(imageRefOf("sha256:1", image), "docker-pullable://repo@sha256:2");
  assert.equal(imageRefOf("sha256:1", undefined), "docker://sha256:1");
});

for (const odd of [0.5, 2 ** 63, 1e300, "64", null]) {
  test(`a limit of ${JSON.stringify(odd)} in docker's answer is none, and the rest is told`, () => {
    const container = inspectedContainer({ Id: "ab", HostConfig: { Memory: odd, CpuShares: 7 } });
    const message = ContainerStatus.encode(criContainerStatus(container, undefined)).finish();
    const { resources } = ContainerStatus.decode(message);
    assert.deepEqual([resources?.linux?.memoryLimitInBytes, resources?.linux?.cpuShares], [0n, 7n]);
  });
}

test("an answer that is rubbish becomes a container that is nobody's", () => {
  for (const rubbish of [
    null,
    7,
    "text",
    [],
    { Id: 3, State: "x", Config: [], HostConfig: { Mounts: "no", Binds: [1] }, Labels: 5 },
  ]) {
    assert.equal(inspectedContainer(rubbish).name, "");
    assert.equal(criContainer(listedContainer(rubbish), "exited"), undefined);
  }
});
