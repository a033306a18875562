// 1,000 probes a second (HTTP, TCP, exec) against servers of another process: do they start on time, at what cost?
// Usage: npm run bench probes [-- SECONDS [PER_SECOND]]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Ledger, silentLogger, systemClock, TaskScope } from "../src/ground/base/index.ts";
import type { ContainerId, IdentifiedPod, PodStep, PodUid, Probe } from "../src/ground/model/index.ts";
import { type ExecInContainer, Probes, probeRunner } from "../src/pod/probes/index.ts";

const [seconds = 20, perSecond = 1_000] = process.argv.slice(2).map(Number);
const warmUpMs = 2_000;

// Shares of the kinds, as a busy node might have them.
const kinds = [...Array<"http">(6).fill("http"), ...Array<"tcp">(3).fill("tcp"), "exec"] as const;

const serverProgram = `
  const http = require("node:http");
  const net = require("node:net");
  const servers = [http.createServer((_, response) => response.end("ok")), net.createServer((s) => s.on("error", () => {}).resume())];
  Promise.all(servers.map((server) => new Promise((resolve) => server.listen(0, "0.0.0.0", 4096, () => resolve(server.address().port)))))
    .then((ports) => console.log(JSON.stringify(ports)));
  process.stdin.resume().on("end", () => process.exit());
`;

const server = spawn(process.execPath, ["-e", serverProgram], { stdio: ["pipe", "pipe", "inherit"] });
const [line] = (await once(createInterface(server.stdout), "line")) as [string];
const [httpPort = 0, tcpPort = 0] = JSON.parse(line) as number[];

const probeOf: Readonly<Record<(typeof kinds)[number], Probe>> = {
  http: { httpGet: { port: httpPort, path: "/healthz" }, periodSeconds: 1 },
  tcp: { tcpSocket: { port: tcpPort }, periodSeconds: 1 },
  exec: { exec: { command: ["true"] }, periodSeconds: 1 },
};

// The runtime's part of an exec is not ours to measure; it takes about this long.
const exec: ExecInContainer = (_id, _command, _timeoutMs, signal) =>
  systemClock
    .sleep(20, signal)
    .then(() => ({ type: "exited", exitCode: 0, stdout: new Uint8Array(), stderr: new Uint8Array() }));

const lateness: number[] = [];
const durations: number[] = [];
const scope = new TaskScope();
const counts = { attempted: 0, completed: 0, failed: 0 };
const runner = probeRunner(exec, systemClock, { concurrency: 20, runtimeTimeoutMs: 120_000 });
let measuring = false;
const probes = new Probes({
  clock: systemClock,
  log: silentLogger,
  scope,
  store: { load: () => undefined, save: async () => {}, remove: async () => {} },
  ledger: new Ledger<PodUid, PodStep>(systemClock),
  recordEvent: (_, { message }) => {
    if (counts.failed < 3) console.error(message);
  },
  run: (target, timeoutMs, signal) => {
    if (measuring) counts.attempted++;
    return runner(target, timeoutMs, signal);
  },
  onProbe: ({ result, lateMs, durationMs }) => {
    if (!measuring) return;
    counts.completed++;
    if (result !== "successful") counts.failed++;
    lateness.push(lateMs);
    durations.push(durationMs);
  },
});

for (let index = 0; index < perSecond; index++) {
  const uid = `pod-${index}`;
  const kind = kinds[index % kinds.length] ?? "http";
  const pod: IdentifiedPod = {
    metadata: { name: uid, namespace: "bench", uid },
    spec: { containers: [{ name: "main", readinessProbe: probeOf[kind] }] },
  };
  probes.ensure(pod);
  // Found running, as after a start of the agent, so that the probes spread over their period.
  const seen = { id: uid as ContainerId, state: "running", startedAt: Date.now() - 60_000, exitCode: 0 } as const;
  // Many addresses, or the ports of connections in TIME_WAIT would run out.
  const podIp = `127.0.0.${1 + (index % 100)}`;
  probes.observe(uid as PodUid, { containers: new Map([["main", seen]]), podIp, hostIp: undefined });
}

await systemClock.sleep(warmUpMs, scope.signal);
const rssBefore = process.memoryUsage.rss();
const cpuBefore = process.cpuUsage();
const startedAt = performance.now();
measuring = true;
await systemClock.sleep(seconds * 1000, scope.signal);
measuring = false;
const elapsedMs = performance.now() - startedAt;
const { user, system } = process.cpuUsage(cpuBefore);
await scope.stop();
server.stdin.end();

console.log(
  JSON.stringify({
    bench: "probes",
    seconds: round(elapsedMs / 1000),
    ...counts,
    perSecond: round(counts.completed / (elapsedMs / 1000)),
    latenessMs: percentiles(lateness),
    durationMs: percentiles(durations),
    cpuPercent: round((user + system) / 10 / elapsedMs),
    rssMb: { before: round(rssBefore / 2 ** 20), after: round(process.memoryUsage.rss() / 2 ** 20) },
  }),
);

function percentiles(values: number[]): { p50: number; p99: number; max: number } {
  values.sort((a, b) => a - b);
  const at = (share: number): number => round(values[Math.floor((values.length - 1) * share)] ?? 0);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
