// A pod on Docker through the shim beside the bare Docker and CNI calls, in turns: start, stop, and exit to status.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Engine } from "../src/beside/dockershim/engine/index.ts";
import { CniNetwork } from "../src/beside/dockershim/network/cni.ts";
import { ContainerEventType, ContainerState, CriClient } from "../src/connections/cri/index.ts";
import { never, silentLogger, systemClock } from "../src/ground/base/index.ts";
import { eventually, Pods } from "../test/contract/pods.ts";
import { nodelet } from "../test/support/daemon.ts";
import { startDocker } from "../test/support/dockerd.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 20);
const untilTold = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"];

await using docker = await startDocker();
const { layout, shimSettings } = docker;
const shim = spawn(nodelet, ["dockershim", ...docker.shimFlags], { stdio: ["ignore", "ignore", "inherit"] });
const client = new CriClient(
  { runtimeEndpoint: layout.shimEndpoint, requestTimeoutMs: 120_000 },
  { clock: systemClock },
);
const engine = new Engine({ socketPath: layout.dockerSocket, requestTimeoutMs: 120_000 }, systemClock);
const pods = new Pods();
try {
  await eventually(async () => (await client.runtime.version({ version: "" }).catch(() => undefined)) && true);
  await mkdir(join(layout.stateDir, "bare"));
  const network = shimSettings.network;
  if (network.plugin !== "cni") throw new Error("the bench wants CNI");
  const cni = new CniNetwork(
    { ...network, stateDir: join(layout.stateDir, "bare") },
    { clock: systemClock, log: silentLogger, env: process.env },
  );
  pods.use({
    runtime: client.runtime,
    images: client.images,
    image: docker.images.busybox,
    directory: layout.stateDir,
    cgroupParent: layout.cgroupRoot,
    [Symbol.asyncDispose]: async () => {},
  });
  const times = { start: [] as number[], stop: [] as number[], bareStart: [] as number[], bareStop: [] as number[] };
  for (let round = -1; round < rounds; round++) {
    const shimTimes = await throughShim();
    const bareTimes = await bare(cni, `bare-${round + 1}`);
    // The first round warms both sides and does not count.
    if (round < 0) continue;
    times.start.push(shimTimes.start);
    times.stop.push(shimTimes.stop);
    times.bareStart.push(bareTimes.start);
    times.bareStop.push(bareTimes.stop);
  }
  const exits = await exitTimes();
  const half = (samples: readonly number[]): number => rounded(quantile(samples, 0.5));
  console.log(
    JSON.stringify({
      bench: "docker-pod-start",
      rounds,
      startP50Ms: half(times.start),
      bareStartP50Ms: half(times.bareStart),
      startRatio: rounded(quantile(times.start, 0.5) / quantile(times.bareStart, 0.5), 2),
      stopP50Ms: half(times.stop),
      bareStopP50Ms: half(times.bareStop),
      stopRatio: rounded(quantile(times.stop, 0.5) / quantile(times.bareStop, 0.5), 2),
      exitToStatusP50Ms: half(exits.status),
      exitToStatusP99Ms: rounded(quantile(exits.status, 0.99)),
      bareExitToEventP50Ms: half(exits.event),
      bareExitToEventP99Ms: rounded(quantile(exits.event, 0.99)),
    }),
  );
} finally {
  client.close();
  engine.close();
  const exited = once(shim, "exit");
  shim.kill("SIGTERM");
  await exited;
}

async function throughShim(): Promise<{ start: number; stop: number }> {
  const began = systemClock.monotonic();
  const pod = await pods.run();
  const id = await pods.start(pod, untilTold);
  const running = systemClock.monotonic();
  await pods.runtime.stopContainer({ containerId: id, timeout: 5n });
  await pods.runtime.stopPodSandbox({ podSandboxId: pod.id });
  await pods.remove(pod);
  return { start: running - began, stop: systemClock.monotonic() - running };
}

/** What any shim has to ask of Docker and CNI for the same pod. */
async function bare(cni: CniNetwork, name: string): Promise<{ start: number; stop: number }> {
  const cgroup = { CgroupParent: `${layout.cgroupRoot}/${name}` };
  const began = systemClock.monotonic();
  const pause = { Image: docker.images.pause, HostConfig: { NetworkMode: "none", IpcMode: "shareable", ...cgroup } };
  const sandbox = await engine.createContainer(`${name}-pause`, pause, never);
  await engine.startContainer(sandbox, never);
  const { state } = await engine.inspectContainer(sandbox, never);
  const pod = { sandboxId: sandbox, pod: name, namespace: "bare" };
  const netns = `/proc/${state.pid}/ns/net`;
  await cni.setUp(pod, netns, {}, never);
  const mode = `container:${sandbox}`;
  const host = { NetworkMode: mode, IpcMode: mode, ...cgroup };
  const main = await engine.createContainer(
    `${name}-main`,
    { Image: docker.images.busybox, Entrypoint: untilTold, HostConfig: host },
    never,
  );
  await engine.startContainer(main, never);
  const running = systemClock.monotonic();
  await engine.killContainer(main, "SIGTERM", never);
  await engine.waitContainer(main, never);
  await cni.tearDown(pod, netns, {}, never);
  await engine.killContainer(sandbox, "SIGKILL", never);
  await engine.waitContainer(sandbox, never);
  for (const id of [main, sandbox]) await engine.removeContainer(id, never);
  return { start: running - began, stop: systemClock.monotonic() - running };
}

/**
 * From the moment a program ends, as the node's clock has it, to the status that says so in a client's hands; and to
 * Docker's own event, before which nobody could know.
 */
async function exitTimes(): Promise<{ status: number[]; event: number[] }> {
  const found = { status: [] as number[], event: [] as number[] };
  const pod = await pods.run();
  const stop = new AbortController();
  const ended = new Map<string, number>();
  const told = new Map<string, number>();
  const listening = (async () => {
    for await (const { action, id } of engine.events(stop.signal, () => {}))
      if (action === "die") told.set(id, Date.now());
  })().catch(() => {});
  const reading = (async () => {
    for await (const event of client.runtime.getContainerEvents({}, { signal: stop.signal })) {
      if (event.containerEventType !== ContainerEventType.CONTAINER_STOPPED_EVENT) continue;
      const { state } = await pods.status(event.containerId).catch(() => ({ state: undefined }));
      if (state === ContainerState.CONTAINER_EXITED) ended.set(event.containerId, Date.now());
    }
  })().catch(() => {});
  for (let attempt = 0; attempt < Math.max(rounds, 100); attempt++) {
    const id = await pods.start(pod, ["sh", "-c", "sleep 0.1"], { attempt });
    const seenAt = await eventually(async () => ended.get(id));
    const { finishedAt } = await pods.status(id);
    const exitedAt = Number(finishedAt / 1_000_000n);
    found.status.push(seenAt - exitedAt);
    found.event.push((told.get(id) ?? seenAt) - exitedAt);
    await pods.runtime.removeContainer({ containerId: id });
  }
  stop.abort();
  await Promise.all([reading, listening]);
  await pods.remove(pod);
  return found;
}
