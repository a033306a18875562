// Loaded into an agent (NODE_OPTIONS=--import): tells each second, in the file it was told, how late its event loop was.
// Time that the main thread was ready but the processors were busy with others is told apart, by the kernel's account.
import { appendFileSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

const file = process.env.NODELET_LOOP_FILE;
// Processes that the agent starts are not meant.
delete process.env.NODELET_LOOP_FILE;
delete process.env.NODE_OPTIONS;
const lookEveryMs = 10;
const tellEveryMs = 1_000;

/** Milliseconds that the main thread has waited for a processor so far. */
function waitedMs() {
  return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[1]) / 1e6;
}

if (file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: lookEveryMs });
  histogram.enable();
  let last = { at: performance.now(), waited: waitedMs() };
  let late = [];
  let own = [];
  setInterval(() => {
    const now = { at: performance.now(), waited: waitedMs() };
    const lateMs = Math.max(0, now.at - last.at - lookEveryMs);
    late.push(lateMs);
    own.push(Math.max(0, lateMs - (now.waited - last.waited)));
    last = now;
  }, lookEveryMs).unref();
  setInterval(() => {
    const line = {
      at: Date.now(),
      maxMs: histogram.max / 1e6,
      late: late.map((ms) => Math.round(ms * 10) / 10),
      own: own.map((ms) => Math.round(ms * 10) / 10),
      rss: process.memoryUsage.rss(),
    };
    late = [];
    own = [];
    histogram.reset();
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  }, tellEveryMs).unref();
}
