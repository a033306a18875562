// Following 100 MB as a container writes them, through the agent beside tail on the runtime's file; in turns, as a ratio.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { systemClock } from "../src/ground/base/index.ts";
import { TestAgent } from "../test/support/agent.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { freePort } from "../test/support/free-port.ts";
import { holdOf, load } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 3);
const lines = 1_000_000;
const text = "x".repeat(99);
const megabytes = (lines * (text.length + 1)) / 1_000_000;
const lastLine = "that was all";

const loadBefore = load();
await using containerd = await startContainerd();
const port = await freePort();
await using agent = await TestAgent.start(containerd, {
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  // tail cannot follow into files that were set aside, so none are.
  containerLogMaxSize: "1Gi",
  port,
});

const follow: number[] = [];
const bareFollow: number[] = [];
const read: number[] = [];
const bareRead: number[] = [];
const holds = [holdOf(agent.pid)];
for (let round = 0; round < rounds; round++) {
  follow.push(await timeFollow(`agent-${round}`, (pod) => logsOf(pod, "?follow=true")));
  holds.push(holdOf(agent.pid));
  bareFollow.push(await timeFollow(`tail-${round}`, tailOf));
  const [agentPod, tailPod] = [`agent-${round}-test-node`, `tail-${round}-test-node`];
  read.push(await timeRead(() => logsOf(agentPod, "")));
  bareRead.push(await timeRead(() => catOf(tailPod)));
  holds.push(holdOf(agent.pid));
  for (const name of [`agent-${round}`, `tail-${round}`]) await agent.remove(name);
}
const [p50, bareP50] = [quantile(follow, 0.5), quantile(bareFollow, 0.5)];
console.log(
  JSON.stringify({
    bench: "logs",
    rounds,
    megabytes,
    followMs: rounded(p50),
    tailMs: rounded(bareP50),
    ratio: rounded(p50 / bareP50, 2),
    mbPerSecond: rounded((megabytes * 1000) / p50),
    // All of it when it is written already: decoded and encrypted, beside cat of the file as it is.
    readMbPerSecond: rounded((megabytes * 1000) / quantile(read, 0.5)),
    catMbPerSecond: rounded((megabytes * 1000) / quantile(bareRead, 0.5)),
    rssMb: holds.map(({ rssMb }) => rssMb),
    load: loadBefore,
  }),
);

/** From the moment the container may write to the moment its last line is there. */
async function timeFollow(name: string, open: (pod: string) => Promise<Readable>): Promise<number> {
  const gate = join(containerd.stateDir, `go-${name}`);
  const wait = "while [ ! -e /gate/go ]; do sleep 0.02; done";
  const write = `yes ${text} | head -n ${lines}; echo ${lastLine}`;
  const main = { name: "main", image: containerd.images.busybox, command: ["sh", "-c", `${wait}; ${write}; sleep 1d`] };
  const volume = { name: "gate", hostPath: { path: gate, type: "DirectoryOrCreate" } };
  await agent.apply(name, {
    terminationGracePeriodSeconds: 0,
    volumes: [volume],
    containers: [{ ...main, volumeMounts: [{ name: "gate", mountPath: "/gate" }] }],
  });
  await agent.until(name, "it runs", ({ status }) => status?.phase === "Running");
  const stream = await open(`${name}-test-node`);
  const began = systemClock.monotonic();
  const opened = spawn("touch", [join(gate, "go")]);
  await once(opened, "close");
  await until(stream);
  return systemClock.monotonic() - began;
}

async function timeRead(open: () => Promise<Readable>): Promise<number> {
  const began = systemClock.monotonic();
  await until(await open());
  return systemClock.monotonic() - began;
}

/** Reads until the last line has come. */
async function until(stream: Readable): Promise<void> {
  let end = "";
  for await (const chunk of stream) {
    end = (end + (chunk as Buffer).subarray(-64).toString("latin1")).slice(-64);
    if (end.includes(lastLine)) return;
  }
  throw new Error("the log ended before its last line");
}

async function logsOf(pod: string, query: string): Promise<Readable> {
  const path = `/containerLogs/default/${pod}/main${query}`;
  const sent = request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`the agent answered with ${response.statusCode}`);
  return response;
}

function tailOf(pod: string): Promise<Readable> {
  return outputOf("tail", ["-c", "+1", "-f", fileOf(pod)]);
}

function catOf(pod: string): Promise<Readable> {
  return outputOf("cat", [fileOf(pod)]);
}

/** What a program prints; it ends when nobody reads that any more. */
async function outputOf(program: string, words: readonly string[]): Promise<Readable> {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.once("close", () => child.kill());
  return child.stdout;
}

function fileOf(pod: string): string {
  const logs = containerd.layout.podLogsDir;
  const directory = readdirSync(logs).find((name) => name.startsWith(`default_${pod}_`));
  if (directory === undefined) throw new Error(`${pod} has no logs below ${logs}`);
  return join(logs, directory, "main", "0.log");
}
