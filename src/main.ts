import { fileURLToPath } from "node:url";
import type { Command, CommandIo } from "./beside/cli/index.ts";
import { defaultLogSettings, explain, LogWriter, never, systemClock, toDescriptor } from "./ground/base/index.ts";

const { env, pid } = process;
const [firstWord = "", ...otherWords] = process.argv.slice(2);
// By number: process.stdout and process.stderr are streams that cost memory and switch a shared pipe to non-blocking.
const outlet = { clock: systemClock, pid, stdout: toDescriptor(1), stderr: toDescriptor(2) };
const logWriter = new LogWriter(outlet, defaultLogSettings);
const lastWordsWithinMs = 500;
const openedStreams: NodeJS.WriteStream[] = [];
const commandNames = [
  ...(["up", "down", "config", "version", "why", "blame", "resources"] as const),
  ...(["evict", "gc", "drain", "shutdown", "help"] as const),
] as const;
type CommandName = (typeof commandNames)[number];
const commands: ReadonlySet<string> = new Set(commandNames);

const stop = new AbortController();
for (const name of ["SIGTERM", "SIGINT"] as const) {
  process.on(name, () => {
    if (stop.signal.aborted) process.exit(1);
    else stop.abort(new DOMException(`received ${name}`, "AbortError"));
  });
}
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);

await leave(await runFirstWord());

async function runFirstWord(): Promise<number> {
  // Words that begin with a dash, or none, are the kubelet's.
  if (firstWord === "" || firstWord.startsWith("-")) return await runDaemon(firstWord, otherWords);
  const running = runCommand(firstWord, otherWords);
  if (running !== undefined) return await running;
  const { unknownCommand } = await import("./beside/cli/index.ts");
  return unknownCommand(firstWord, commandIo());
}

/** Runs the command of this name; undefined when there is none. */
function runCommand(name: string, args: readonly string[]): Promise<number> | undefined {
  if (name === "api-server") return runLocalApi(args);
  if (name === "run-once") return runDaemon(name, args);
  if (!commands.has(name)) return undefined;
  return commandNamed(name as CommandName).then((command) => command(args, commandIo()));
}

/** The commands for people. Neither they nor the daemon load the other's code. */
async function commandNamed(name: CommandName): Promise<Command> {
  const cli = await import("./beside/cli/index.ts");
  switch (name) {
    case "up":
      return cli.upCommand;
    case "down":
      return cli.downCommand;
    case "config":
      return cli.configCommand;
    case "version":
      return cli.versionCommand;
    case "why":
      return cli.whyCommand;
    case "blame":
      return cli.blameCommand;
    case "resources":
      return cli.resourcesCommand;
    case "shutdown":
      return cli.shutdownCommand;
    case "evict":
      return cli.evictCommand;
    case "gc":
      return cli.gcCommand;
    case "drain":
      return cli.drainCommand;
    case "help":
      return cli.helpCommand(runCommand);
  }
}

function commandIo(): CommandIo {
  const { stdout, stderr } = openStreams();
  return {
    stdout,
    stderr,
    isTTY: stdout.isTTY === true,
    terminal: () => ({ columns: stdout.columns ?? 80, rows: stdout.rows ?? 24 }),
    signal: stop.signal,
    env,
    cwd: process.cwd(),
    home: fileURLToPath(new URL("..", import.meta.url)),
    clock: systemClock,
  };
}

async function runDaemon(word: string, others: readonly string[]): Promise<number> {
  const agent = await import("./agent/index.ts");
  const service = {
    notifySocket: env["NOTIFY_SOCKET"],
    watchdogUsec: env["WATCHDOG_USEC"],
    watchdogPid: env["WATCHDOG_PID"],
  };
  const isOnce = word === "run-once";
  const run = isOnce ? agent.runOnce : agent.runDaemon;
  return await run(
    {
      argv: isOnce ? others : process.argv.slice(2),
      cwd: process.cwd(),
      env,
      service,
      pid,
      isRoot: process.geteuid?.() === 0,
      clock: systemClock,
      logWriter,
      print: (text) => openStreams().stdout.write(text),
    },
    stop.signal,
  );
}

/** The local API server is a process of its own, so that neither it nor the agent takes the other down. */
async function runLocalApi(args: readonly string[]): Promise<number> {
  const { runApiServer } = await import("./beside/localapi/index.ts");
  const print = (text: string): unknown => openStreams().stdout.write(text);
  return await runApiServer(args, { cwd: process.cwd(), clock: systemClock, logWriter, print }, stop.signal);
}

/** A defect: everything expected was handled where it belongs. */
function crash(error: unknown): void {
  // Lines for a log are for the daemons; people read sentences.
  if (commands.has(firstWord)) {
    openStreams().stderr.write(`nodelet ${firstWord}: ended because of a defect in it: ${explain(error)}\n`);
    return void leave(1);
  }
  logWriter.fatal("The process ends because of a defect in it", error);
  const stack = error instanceof Error ? error.stack : undefined;
  logWriter.logger("main").debug(4, "Where it happened", { stack });
  void leave(1);
}

/** stdout and stderr for people and their pipes. A reader that left (`| head`) ends us as SIGPIPE would. */
function openStreams(): Pick<NodeJS.Process, "stdout" | "stderr"> {
  if (openedStreams.length === 0) {
    openedStreams.push(process.stdout, process.stderr);
    for (const stream of openedStreams) stream.on("error", () => process.exit(128 + 13));
  }
  return process;
}

/** Ends the process once what it said is out. A log reader that stalls does not keep us, a slow pipe of the user does. */
async function leave(code: number): Promise<void> {
  await Promise.race([logWriter.flush(), systemClock.sleep(lastWordsWithinMs, never)]);
  for (const stream of openedStreams) await new Promise((resolve) => stream.write("", resolve));
  process.exit(code);
}
