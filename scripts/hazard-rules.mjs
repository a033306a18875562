// What the check forbids in src/ because it can hang or grow with what a pod, a plugin or a server controls
// (docs/decisions/0066-work-that-can-hang-or-grow.md), and where it is allowed nevertheless, with the reason.
// A place is a file or a folder of src/.
import childProcess from "node:child_process";
import fs from "node:fs";
import zlib from "node:zlib";

const syncNames = [fs, childProcess, zlib].flatMap((module) =>
  Object.keys(module).filter((name) => /Sync$/.test(name)),
);
// Closing is short work on a descriptor that we have: waiting for it elsewhere would only cost a thread.
const waits = syncNames.filter((name) => name !== "closeSync").join("|");

export const hazards = [
  {
    name: "synchronous call",
    pattern: new RegExp(`(?<![.\\w])(?:fs\\.)?(?:${waits})\\(`, "g"),
    instead: "it stops every pod while it waits; use node:fs/promises",
    allowed: {
      "base/log-stream.ts": "asks about our own standard output, once",
      "cli/": "a command has nothing else to do meanwhile",
      "hollow/": "the simulated runtime writes where a simulation runs",
      "host/locks.ts": "at start, before anything runs",
      "host/usage/": "files of the kernel's memory: two thirds cheaper than by threads, and they can't hang",
    },
  },
  {
    name: "unbounded Promise.all",
    pattern: /Promise\.(?:all|allSettled)\((?!\s*\[(?!\s*\.\.\.)|\s*\))/g,
    instead: "use mapAtMost or settleAtMost of base/, or list the promises",
    allowed: {
      "base/at-most.ts": "is the bound",
      "base/task-scope.ts": "waits for work that was begun elsewhere",
    },
  },
  {
    name: "bare abort listener",
    pattern: /addEventListener\(\s*"abort"|AbortSignal\.any\(|AbortSignal\.timeout\(/g,
    instead: "use onAbort, LinkedSignal, withDeadline or unlessAborted of base/",
    allowed: { "base/signals.ts": "is the home of listeners" },
  },
];
