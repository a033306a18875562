import { addAbortSignal } from "node:stream";
import { fileURLToPath } from "node:url";
import type { OtherFigures } from "./agent/index.ts";
import type { CommandIo, OtherProcesses, ScreenSize } from "./beside/cli/index.ts";
import {
  codeOf,
  defaultLogSettings,
  explain,
  LogWriter,
  messageOf,
  never,
  partsLost,
  systemClock,
  toDescriptor,
} from "./ground/base/index.ts";

const { env, pid } = process;
const [firstWord = "", ...otherWords] = process.argv.slice(2);
// By number: process.stdout and process.stderr are streams that cost memory and switch a shared pipe to non-blocking.
const outlet = { clock: systemClock, pid, stdout: toDescriptor(1), stderr: toDescriptor(2) };
const logWriter = new LogWriter(outlet, defaultLogSettings);
const lastWordsWithinMs = 500;
const openedStreams: NodeJS.WriteStream[] = [];
/** What has to be done before `process.exit`, which may wait for ever. */
let beforeExit: (code: number) => Promise<void> = async () => {};
/** Processes of their own that begin with a command's words; they log as the daemon does. */
const otherProcesses: OtherProcesses = {
  runOnce: (words) => runDaemon(words, "once"),
  // So that neither the local API server nor the agent takes the other down.
  apiServer: async (options) => {
    const { runApiServer } = await import("./beside/localapi/index.ts");
    return await runApiServer(options, { clock: systemClock, logWriter }, stop.signal);
  },
  dockershim: async (flags) => {
    const { runDockershim } = await import("./beside/dockershim/index.ts");
    return await runDockershim(flags, { env, clock: systemClock, logWriter }, stop.signal);
  },
};

const stop = new AbortController();
for (const name of ["SIGTERM", "SIGINT"] as const) {
  process.on(name, () => {
    if (stop.signal.aborted) void exit(1);
    else stop.abort(new DOMException(`received ${name}`, "AbortError"));
  });
}
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);
partsLost.on((error) => {
  logWriter.fatal("The process ends, to be started anew: a part of it could not be loaded, and never would be", error);
  void leave(1);
});

await leave(await runFirstWord());

async function runFirstWord(): Promise<number> {
  // Words that begin with a dash, or none, are the kubelet's.
  if (firstWord === "" || firstWord.startsWith("-")) return await runDaemon(process.argv.slice(2), "for ever");
  // The commands for people. Neither they nor the daemon load the other's code.
  const { runCommand, terminalSize } = await import("./beside/cli/index.ts");
  const terminal = (): ScreenSize => terminalSize(process.stdout);
  return await runCommand([firstWord, ...otherWords], commandIo(terminal), otherProcesses);
}

/** Streams are opened by who uses them: the processes that log have no need of them. */
function commandIo(terminal: CommandIo["terminal"]): CommandIo {
  return {
    get stdout() {
      return openStreams().stdout;
    },
    get stderr() {
      return openStreams().stderr;
    },
    get isTTY() {
      return openStreams().stdout.isTTY === true;
    },
    input: () => ({
      isTTY: process.stdin.isTTY === true,
      setRaw: (raw) => void process.stdin.setRawMode?.(raw),
      read: (signal) => addAbortSignal(signal, process.stdin),
      onResize: (listener) => {
        process.stdout.on("resize", listener);
        return () => process.stdout.off("resize", listener);
      },
    }),
    terminal,
    signal: stop.signal,
    env,
    cwd: process.cwd(),
    home: fileURLToPath(new URL("..", import.meta.url)),
    clock: systemClock,
  };
}

async function runDaemon(words: readonly string[], howLong: "for ever" | "once"): Promise<number> {
  const agent = await import("./agent/index.ts");
  beforeExit = (code) => agent.exitDespiteThreads(code, process.getActiveResourcesInfo());
  const service = {
    notifySocket: env["NOTIFY_SOCKET"],
    watchdogUsec: env["WATCHDOG_USEC"],
    watchdogPid: env["WATCHDOG_PID"],
  };
  const run = howLong === "once" ? agent.runOnce : agent.runDaemon;
  const runAgent = (argv: readonly string[], ending: AbortSignal, otherFigures?: OtherFigures): Promise<number> =>
    run(
      {
        argv,
        cwd: process.cwd(),
        env,
        service,
        pid,
        uid: process.geteuid?.() ?? -1,
        clock: systemClock,
        logWriter,
        memory: () => {
          const { rss, heapUsed, heapTotal } = process.memoryUsage();
          return { rssBytes: rss, heapUsedBytes: heapUsed, heapTotalBytes: heapTotal };
        },
        activeResources: () => process.getActiveResourcesInfo(),
        print: (text) => openStreams().stdout.write(text),
        otherFigures,
      },
      ending,
    );
  // Only a kubelet of old names its runtime; all others never load the shim in front of Docker.
  if (!words.some((word) => /^--container[-_]runtime(=|$)/.test(word))) return await runAgent(words, stop.signal);
  const { runWithShim, splitArguments } = await import("./beside/dockershim/index.ts");
  const split = splitArguments(words);
  if (split === undefined) return await runAgent(words, stop.signal);
  return await runWithShim(split, { env, clock: systemClock, logWriter }, stop.signal, runAgent);
}

/** A defect: everything expected was handled where it belongs. */
function crash(error: unknown): void {
  // Lines for a log are for the daemons; people read sentences.
  const isForPeople = /^\w/.test(firstWord) && firstWord !== "run-once" && firstWord !== "api-server";
  if (isForPeople) {
    openStreams().stderr.write(`nodelet ${firstWord}: ended because of a defect in it: ${explain(error)}\n`);
    return void leave(1);
  }
  logWriter.fatal("The process ends because of a defect in it", error);
  const stack = error instanceof Error ? error.stack : undefined;
  logWriter.logger("main").debug(4, "Where it happened", { stack });
  void leave(1);
}

/** stdout and stderr for people and their pipes. A reader that left (`| head`) ends us as SIGPIPE would; a full disk is told. */
function openStreams(): Pick<NodeJS.Process, "stdout" | "stderr"> {
  if (openedStreams.length === 0) {
    openedStreams.push(process.stdout, process.stderr);
    for (const stream of openedStreams) {
      stream.on("error", (error) => {
        if (codeOf(error) === "EPIPE") process.exit(128 + 13);
        if (stream === process.stdout) process.stderr.write(`nodelet: can't write the answer: ${messageOf(error)}\n`);
        process.exit(1);
      });
    }
  }
  return process;
}

/** Ends the process once what it said is out. A log reader that stalls does not keep us, a slow pipe of the user does. */
async function leave(code: number): Promise<void> {
  await Promise.race([logWriter.flush(), systemClock.sleep(lastWordsWithinMs, never)]);
  for (const stream of openedStreams) await new Promise((resolve) => stream.write("", resolve));
  await exit(code);
}

async function exit(code: number): Promise<void> {
  await beforeExit(code).catch(() => {});
  process.exit(code);
}
