// The thread of trial-guard.ts. It shares nothing with the agent but a count of beats: it must go on while that is stuck.
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import process from "node:process";
import { workerData } from "node:worker_threads";
import type { GuardOrders } from "./trial-guard.ts";

const { beats, limitMs, notePath, note } = workerData as GuardOrders;

// Halves: a process that was stopped and goes on finds the time over at once, and has the second half to say that it lives.
let silentHalves = 0;
while (silentHalves < 2) {
  const heard = Atomics.load(beats, 0);
  silentHalves = Atomics.wait(beats, 0, heard, limitMs / 2) === "timed-out" ? silentHalves + 1 : 0;
}
try {
  const file = openSync(notePath, "w", 0o600);
  writeSync(file, note);
  fsyncSync(file);
  closeSync(file);
} catch {
  // The next process counts a crash instead.
}
// An orderly exit would wait for the thread that is stuck.
process.kill(process.pid, "SIGKILL");
