// Hostile pods of every kind beside 20 good ones: event loop, probes, starts, statuses and memory. Args: names of kinds (all).

import { existsSync, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/base/index.ts";
import { CriClient } from "../src/cri/index.ts";
import { resources } from "../src/kube/index.ts";
import type { Container, Pod } from "../src/model/index.ts";
import { eventually, isReady } from "../test/support/agent.ts";
import { ApiCluster } from "../test/support/api-cluster.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { leftovers } from "../test/support/restart-proof/leftovers.ts";
import { type HostilePod, hostilePods } from "./lib/hostile-pods.ts";
import { load } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const goodCount = 20;
const starts = 5;
/** How long the good pods are watched alone, each hostile pod after it came, and all of them together. */
const calmMs = 20_000;
const eachMs = 5_000;
const togetherMs = 45_000;
/** What is wanted. */
const p99LimitMs = 50;
const standstillLimitMs = 200;
const forever = new AbortController().signal;

interface LoopLine {
  readonly at: number;
  readonly maxMs: number;
  readonly late: readonly number[];
  readonly own: readonly number[];
  readonly rss: number;
}

const only = process.argv.slice(2);
await using containerd = await startContainerd();
const loopFile = join(containerd.stateDir, "loop.jsonl");
process.env["NODELET_LOOP_FILE"] = loopFile;
process.env["NODE_OPTIONS"] = `--import=${fileURLToPath(new URL("lib/loop-probe.mjs", import.meta.url))}`;
await using cluster = await ApiCluster.start(containerd, {}, "member", ["--node-labels=bench.example/rank=5"]);
using cri = Object.assign(
  new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 60_000 }, { clock: systemClock }),
  { [Symbol.dispose]: () => cri.close() },
);

/** When each good pod was probed, by its path. */
const probed = new Map<string, number[]>();
const unwell = new Set<string>();
const server = createServer((request, response) => answer(request.url ?? "", response));
server.listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const { port } = server.address() as AddressInfo;
const image = containerd.images.busybox;
const hostile = hostilePods({ image, badPort: port }).filter(({ name }) => only.length === 0 || only.includes(name));
if (only.length > hostile.length) {
  throw new Error(
    `there are only these kinds: ${hostilePods({ image, badPort: port })
      .map(({ name }) => name)
      .join(", ")}`,
  );
}

const pid = cluster.agent.pid;
await using watch = await cluster.watch();
const good = Array.from({ length: goodCount }, (_, index) => `good-${index}`);
for (const [index, name] of good.entries()) await cluster.create(name, { containers: [goodContainer(name, index)] });
for (const name of good) await cluster.until(name, "ready", isReady);
const seenBefore = new Map(good.map((name) => [name, watch.versions(name).length]));

const calm = await phase("calm", calmMs);
const windows: { readonly name: string; readonly ownMaxMs: number }[] = [];
const hostileBegan = systemClock.now();
for (const pod of hostile) {
  const began = systemClock.now();
  await release(pod);
  await systemClock.sleep(eachMs, forever);
  if (pod.losesSandbox === true) await stopSandbox(pod.name);
  const { ownMaxMs } = figures(began, systemClock.now());
  windows.push({ name: pod.name, ownMaxMs });
  console.error(
    `${pod.name}: standstill of at most ${ownMaxMs} ms${cluster.agent.exitCode === undefined ? "" : "; the agent ended"}`,
  );
  if (cluster.agent.exitCode !== undefined) await cluster.agent.launch();
}
const together = await phase("together", togetherMs);
const removalBegan = systemClock.now();
const stuck = await removeHostile();
const whole = figures(hostileBegan, systemClock.now());
const removal = figures(removalBegan, systemClock.now());
const harm = good.flatMap((name) => harmTo(name));
for (const name of good) await cluster.delete(name, 0);
const left = await leftovers(containerd, cri, 60_000);
for (const line of [...harm, ...stuck, ...left]) console.error(line);

const ended = cluster.agent.exitCode !== undefined || cluster.agent.pid !== pid;
const passed =
  !ended &&
  whole.ownP99Ms <= p99LimitMs &&
  whole.ownMaxMs <= standstillLimitMs &&
  harm.length + stuck.length + left.length === 0 &&
  together.longestProbeGapMs < Math.max(3_000, calm.longestProbeGapMs * 2);
console.log(
  JSON.stringify({
    bench: "hostile",
    passed,
    kinds: hostile.length,
    goodPods: goodCount,
    load: load(),
    calm,
    together,
    whole,
    removal,
    worst: windows.toSorted((a, b) => b.ownMaxMs - a.ownMaxMs).slice(0, 5),
    agentEnded: ended,
    harmedGoodPods: harm.length,
    stuckHostilePods: stuck.length,
    left: left.length,
  }),
);
server.closeAllConnections();
server.close();
if (!passed) process.exitCode = 1;

function goodContainer(name: string, index: number): Container {
  const patient = { periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1 } as const;
  const probe =
    index % 4 === 3
      ? { exec: { command: ["true"] }, ...patient, periodSeconds: 3 }
      : { httpGet: { host: "127.0.0.1", port, path: `/good/${name}` }, ...patient };
  const livenessProbe = { ...probe, timeoutSeconds: 30, failureThreshold: 3 };
  const command = ["sh", "-c", "trap 'exit 0' TERM; sleep 1d & wait"];
  return { name: "main", image, command, readinessProbe: probe, ...(index % 4 === 3 && { livenessProbe }) };
}

/** Watches the loop for a while, and how long good pods take to start and to be seen unready. */
async function phase(name: string, ms: number) {
  const began = systemClock.now();
  const startMs: number[] = [];
  const statusMs: number[] = [];
  for (let index = 0; index < starts; index++) {
    const pod = `${name}-${index}`;
    const from = systemClock.monotonic();
    await cluster.create(pod, { containers: [goodContainer(pod, 0)] });
    await seen(pod, isReady);
    startMs.push(systemClock.monotonic() - from);
    unwell.add(`/good/${pod}`);
    const fell = systemClock.monotonic();
    await seen(pod, (found) => !isReady(found));
    statusMs.push(systemClock.monotonic() - fell);
    await cluster.delete(pod, 0);
  }
  await systemClock.sleep(Math.max(0, ms - (systemClock.now() - began)), forever);
  const gaps = [...probed].filter(([path]) => /^\/good\/good-/.test(path)).map(([, times]) => longestGap(times, began));
  return {
    ...figures(began, systemClock.now()),
    startMs: rounded(quantile(startMs, 0.5), 0),
    statusMs: rounded(quantile(statusMs, 0.5), 0),
    longestProbeGapMs: Math.round(Math.max(...gaps)),
  };
}

async function seen(name: string, condition: (pod: Pod) => boolean): Promise<void> {
  await eventually(
    async () => {
      const pod = watch.lastSeen(name);
      return pod !== undefined && condition(pod);
    },
    `${name} is seen`,
    60_000,
  );
}

function longestGap(times: readonly number[], began: number): number {
  const inPhase = times.filter((time) => time >= began);
  return Math.max(
    ...inPhase.map((time, index) => time - (inPhase[index - 1] ?? began)),
    systemClock.now() - (inPhase.at(-1) ?? began),
  );
}

/** The delays of the agent's event loop between two moments: all of them, and without those that a busy machine caused. */
function figures(from: number, to: number) {
  const lines = existsSync(loopFile)
    ? readFileSync(loopFile, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as LoopLine)
    : [];
  const within = lines.filter(({ at }) => at >= from && at <= to + 1_000);
  const late = within.flatMap((line) => line.late);
  const own = within.flatMap((line) => line.own);
  return {
    p99Ms: rounded(quantile([0, ...late], 0.99)),
    maxMs: rounded(Math.max(0, ...within.map(({ maxMs }) => maxMs))),
    ownP99Ms: rounded(quantile([0, ...own], 0.99)),
    ownMaxMs: rounded(Math.max(0, ...own)),
    rssMb: rounded(Math.max(0, ...within.map(({ rss }) => rss)) / 2 ** 20, 0),
  };
}

async function release({ name, spec, annotations, isStatic }: HostilePod): Promise<void> {
  if (isStatic === true) return await cluster.agent.apply(name, spec);
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(annotations !== undefined && { annotations }) },
    spec: {
      nodeName: "test-node",
      terminationGracePeriodSeconds: 2,
      automountServiceAccountToken: false,
      containers: [],
      ...spec,
    },
  };
  await cluster.admin.create(resources.pods, { namespace: "default" }, pod, AbortSignal.timeout(30_000));
}

async function stopSandbox(name: string): Promise<void> {
  const { items } = await cri.runtime.listPodSandbox({ filter: undefined });
  for (const { id, metadata } of items) {
    if (metadata?.name === name) await cri.runtime.stopPodSandbox({ podSandboxId: id });
  }
}

/** Deletes them all; names those that do not go. */
async function removeHostile(): Promise<readonly string[]> {
  for (const { name, isStatic } of hostile) {
    if (isStatic === true) await cluster.agent.remove(name);
    else await cluster.delete(name);
  }
  const there = (): Promise<readonly string[]> =>
    cluster.admin
      .list(resources.pods, { namespace: "default" }, {}, AbortSignal.timeout(10_000))
      .then(({ items }) =>
        items.map(({ metadata }) => metadata?.name ?? "").filter((name) => !name.startsWith("good-")),
      );
  await eventually(async () => (await there()).length === 0, "the hostile pods are gone", 120_000).catch(() => {});
  return (await there()).map((name) => `${name} does not go`);
}

/** Restarts and readiness that a good pod lost. */
function harmTo(name: string): readonly string[] {
  const versions = watch.versions(name).slice(seenBefore.get(name));
  const restarts = versions.at(-1)?.status?.containerStatuses?.[0]?.restartCount ?? 0;
  const flips = versions.filter((pod) => !isReady(pod)).length;
  return [...(restarts > 0 ? [`${name} was restarted`] : []), ...(flips > 0 ? [`${name} was shown unready`] : [])];
}

function answer(path: string, response: ServerResponse): void {
  response.on("error", () => {});
  if (path.startsWith("/good/")) {
    probed.set(path, [...(probed.get(path) ?? []), systemClock.now()]);
    response.statusCode = unwell.has(path) ? 503 : 200;
    response.end("ok");
  } else if (path === "/endless") pour(response);
  else if (path === "/headers") {
    for (let index = 0; index < 100; index++) response.setHeader(`x-${index}`, "h".repeat(10_000));
    response.end("ok");
  } else if (path !== "/silent") response.end("ok");
}

/** As much as the client takes, without end. */
function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, "x");
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", more);
  more();
}
