// Loaded into an agent (NODE_OPTIONS=--import): tells each second, in the file it was told, how late its event loop was.
// Told apart, by the kernel's account, is time that the agent was ready for but the processors were busy with others: the
// main thread, or a thread that it waited for (a collector of garbage).
// When a file of that name and ".settle" appears, garbage is collected and what is still held is told.
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const file = process.env.NODELET_LOOP_FILE;
// Processes that the agent starts are not meant.
delete process.env.NODELET_LOOP_FILE;
delete process.env.NODE_OPTIONS;
const lookEveryMs = 10;
const tellEveryMs = 1_000;

/** A standstill shorter than this says nothing, and need not be explained. */
const noticeableMs = 20;
/** The other threads are looked at now and then only: that takes a file for each. */
const looksPerCensus = 10;

/** Milliseconds that a thread has run, and has waited for a processor, so far. */
function times(path) {
  const [ran, waited] = readFileSync(path, "utf8").split(" ");
  return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
}

/** How long each of the other threads has waited for a processor so far. */
function census() {
  const waited = new Map();
  for (const thread of readdirSync("/proc/self/task")) {
    try {
      if (thread !== `${process.pid}`) waited.set(thread, times(`/proc/self/task/${thread}/schedstat`).waited);
    } catch {
      // It has ended since.
    }
  }
  return waited;
}

function longestWait(before, after) {
  return Math.max(0, ...[...after].map(([thread, waited]) => waited - (before.get(thread) ?? waited)));
}

function look() {
  return { at: performance.now(), ...times("/proc/self/schedstat") };
}

/** Bytes that are held when there is no garbage. */
function settled() {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for (let round = 0; round < 3; round++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

if (file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: lookEveryMs });
  histogram.enable();
  let last = look();
  let others = census();
  let looks = 0;
  let late = [];
  let own = [];
  setInterval(() => {
    const now = look();
    const lateMs = Math.max(0, now.at - last.at - lookEveryMs);
    const ranMs = Math.min(lateMs, now.ran - last.ran);
    let idleMs = Math.max(0, lateMs - ranMs - (now.waited - last.waited));
    if (idleMs > noticeableMs) idleMs = Math.max(0, idleMs - longestWait(others, census()));
    late.push(lateMs);
    own.push(ranMs + idleMs);
    if (++looks % looksPerCensus === 0) others = census();
    last = look();
  }, lookEveryMs).unref();
  setInterval(() => {
    const line = {
      at: Date.now(),
      maxMs: histogram.max / 1e6,
      late: late.map((ms) => Math.round(ms * 10) / 10),
      own: own.map((ms) => Math.round(ms * 10) / 10),
      rss: process.memoryUsage.rss(),
    };
    if (existsSync(`${file}.settle`)) {
      rmSync(`${file}.settle`);
      line.settled = settled();
    }
    late = [];
    own = [];
    appendFileSync(file, `${JSON.stringify(line)}\n`);
    // What this took is not the agent's.
    last = look();
    histogram.reset();
  }, tellEveryMs).unref();
}
