// How long `nodelet doctor` takes beside an agent, and its memory beside that of bare node. Args: runs.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { systemClock } from "../src/ground/base/index.ts";
import { DaemonHome, nodelet } from "../test/support/daemon.ts";
import { serveFakeRuntime } from "../test/support/served-runtime.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const runs = Number(process.argv[2] ?? 9);
const never = new AbortController().signal;

interface Run {
  readonly seconds: number;
  readonly peakMb: number;
}

/** The largest memory that the process ever had, looked at until it ends. */
async function measure(program: string, args: readonly string[]): Promise<Run> {
  const startedAt = systemClock.monotonic();
  const child = spawn(program, args, { stdio: "ignore" });
  const ended = once(child, "exit");
  let peakKb = 0;
  while (child.exitCode === null && child.signalCode === null) {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      peakKb = Math.max(peakKb, Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0));
    } catch {
      // It has just ended.
    }
    await systemClock.sleep(2, never);
  }
  await ended;
  return { seconds: (systemClock.monotonic() - startedAt) / 1000, peakMb: peakKb / 1024 };
}

await using home = await DaemonHome.create();
await using _runtime = await serveFakeRuntime(home.runtimeSocket);
const agent = home.start();
await agent.until("it had started", () => agent.stderr.includes('"Started nodelet"'));
const doctor: Run[] = [];
const bare: Run[] = [];
for (let run = 0; run < runs; run++) {
  // In turns, so that a busy moment of the machine hits both.
  doctor.push(await measure(nodelet, ["doctor", "--json", `--root-dir=${home.rootDir}`]));
  bare.push(await measure(process.execPath, ["-e", "setTimeout(() => {}, 50)"]));
}
const peakMb = quantile(
  doctor.map((run) => run.peakMb),
  0.5,
);
const bareNodeMb = quantile(
  bare.map((run) => run.peakMb),
  0.5,
);
console.log(
  JSON.stringify({
    bench: "doctor",
    runs,
    seconds: rounded(
      quantile(
        doctor.map((run) => run.seconds),
        0.5,
      ),
      2,
    ),
    worstSeconds: rounded(Math.max(...doctor.map((run) => run.seconds)), 2),
    secondsBudget: 2,
    peakMb: rounded(peakMb),
    bareNodeMb: rounded(bareNodeMb),
    aboveBareNodeMb: rounded(peakMb - bareNodeMb),
    aboveBareNodeBudgetMb: 30,
  }),
);
