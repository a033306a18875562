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

/** Offsets of all matches. */
const each = (pattern) => (code) => [...code.matchAll(pattern)].map(({ index }) => index);

export const hazards = [
  {
    name: "synchronous call",
    find: each(new RegExp(`(?<![.\\w])(?:fs\\.)?(?:${waits})\\(`, "g")),
    instead: "it stops every pod while it waits; use node:fs/promises",
    allowed: {
      "ground/base/log-stream.ts": "asks about our own standard output, once",
      "ground/base/recent-lines.ts": "packs 32 KiB at most, in memory: a third of a millisecond every 64 lines",
      "beside/hollow/": "the simulated runtime writes where a simulation runs",
      "connections/host/held-directory.ts": "a file of the kernel's memory about a descriptor that we hold",
      "connections/host/tree-walk.ts": "asks about a descriptor that we hold",
      "connections/host/kernel-log.ts": "a device of the kernel's memory, opened so that it never waits",
      "connections/host/removed-names.ts": "a descriptor of the kernel's that never waits",
      "connections/host/locks.ts":
        "at start, before anything runs; later on a descriptor of the kernel's that never waits",
      "connections/host/usage/":
        "files of the kernel's memory: two thirds cheaper than by threads, and they can't hang",
      "node/rollout/trial-guard-thread.ts": "a thread of its own, which does nothing else",
      "pod/probes/file-store.ts": "a small file of our own, once per pod, when it is taken over",
      "pod/workers/pod-checkpoint.ts": "a small file of our own, once per pod, when it is taken over",
    },
  },
  {
    name: "unbounded Promise.all",
    find: each(/Promise\.(?:all|allSettled)\((?!\s*\[(?!\s*\.\.\.)|\s*\))/g),
    instead: "use mapAtMost or settleAtMost of ground/base/, or list the promises",
    allowed: {
      "ground/base/at-most.ts": "is the bound",
    },
  },
  {
    name: "process started by the event loop",
    find: each(/from "node:child_process"/g),
    instead: "it stands still until the new process has its program; use runProgram or startOwnProcess of ground/base/",
    allowed: {
      "ground/base/child-processes.ts": "runs in the thread that starts them",
      "node/server/api/log-query.ts":
        "streams the journal to whoever may read the node's logs, where that is switched on",
      "beside/cli/machine/containerd.ts": "of a command that does nothing else meanwhile",
    },
  },
  {
    name: "abort listener by hand",
    find: each(/addEventListener\(\s*["'`]abort\b|\.onabort\b|\bonce\([^()]*,\s*["'`]abort\b/g),
    instead:
      "one that is forgotten stays as long as the daemon; use onAbort, waitFor, LinkedSignal or withDeadline of ground/base/",
    allowed: {
      "ground/base/signals.ts": "is the way to listen",
      "beside/dashboard/page/ask.ts":
        "runs in a browser, without ground/base/, and stops listening when it is answered",
    },
  },
  {
    name: "name looked up by the system",
    find: each(/import \{[^}]*\blookup\b[^}]*\} from "node:dns(?:\/promises)?"/g),
    instead: "a dead name server holds a thread that all need for half a minute; use systemNames of ground/base/",
    allowed: {
      "ground/base/system-names.ts": "is the bound",
    },
  },
  {
    name: "plain object as a table",
    // Also one that is written where it is asked.
    find: each(/^(?:export )?const \w+: (?:Readonly<)?Record<string, .*> = \{|= \{[^{}\n]*\}\[/gm),
    instead: "it also knows `constructor` and `__proto__`, which anybody may send; use table of ground/base/",
    allowed: {
      "ground/config/defaults.ts": "is copied, never asked",
    },
  },
  {
    name: "end that is looked for from everywhere",
    // All of it is one repetition, perhaps after something that may be anything.
    find: each(
      /(?<=[(=,!&|?]\s*|: )\/(?:\(\.\)|\(\?<=\.\))?(?:[^^/\\[\n()|]|\\.|\[(?:[^\]\\\n]|\\.)*\])[+*]\$\/[a-z]*/g,
    ),
    instead: "`/x+$/` takes time by the square of a text with many x; begin with ^, or go back from the end by hand",
    allowed: {
      "ground/base/duration.ts": "nine digits",
      "ground/config/text/eviction-text.ts": "a threshold of our own configuration",
      "connections/kube/transport/transport.ts": "the address of our API server, once",
      "pod/sources/file-source.ts": "a path of our own configuration, once",
      "pod/runtime/mapping/hostname.ts": "63 characters at most",
      "beside/hollow/log-file.ts": "nine digits",
    },
  },
  {
    name: "signal made of signals",
    find: each(/AbortSignal\.(?:any|timeout)\(/g),
    instead: "what it listens to keeps it alive; use LinkedSignal or withDeadline of ground/base/",
    allowed: {},
  },
  {
    name: "code of an error by hand",
    find: each(/"code" in |as NodeJS\.ErrnoException\b/g),
    instead: "use hasCode, isMissing or codeOf of ground/base/",
    allowed: {
      "ground/base/errors.ts": "is the way to ask",
    },
  },
];
