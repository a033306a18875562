import { fileURLToPath } from "node:url";
import { defaultLogSettings, LogWriter, systemClock, toDescriptor } from "./base/index.ts";
import type { Command, CommandIo } from "./cli/index.ts";

const { env, pid } = process;
const [firstWord = "", ...otherWords] = process.argv.slice(2);
// By number: process.stdout and process.stderr are streams that cost memory and switch a shared pipe to non-blocking.
const outlet = { clock: systemClock, pid, stdout: toDescriptor(1), stderr: toDescriptor(2) };
const logWriter = new LogWriter(outlet, defaultLogSettings);
const lastWordsWithinMs = 500;
const openedStreams: NodeJS.WriteStream[] = [];
const commandNames = ["up", "down", "config", "version", "why", "blame"] as const;
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
  if (firstWord === "api-server") return await runLocalApi();
  const command = await commandNamed(firstWord);
  return await (command === undefined ? runDaemon() : command(otherWords, commandIo()));
}

/** The commands for people; without one this is the daemon. Neither loads the other's code. */
async function commandNamed(name: string): Promise<Command | undefined> {
  if (!commands.has(name)) return undefined;
  const cli = await import("./cli/index.ts");
  switch (name as CommandName) {
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

async function runDaemon(): Promise<number> {
  const agent = await import("./agent/index.ts");
  const service = {
    notifySocket: env["NOTIFY_SOCKET"],
    watchdogUsec: env["WATCHDOG_USEC"],
    watchdogPid: env["WATCHDOG_PID"],
  };
  const isOnce = firstWord === "run-once";
  const run = isOnce ? agent.runOnce : agent.runDaemon;
  return await run(
    {
      argv: isOnce ? otherWords : process.argv.slice(2),
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
async function runLocalApi(): Promise<number> {
  const { runApiServer } = await import("./localapi/index.ts");
  const print = (text: string): unknown => openStreams().stdout.write(text);
  return await runApiServer(otherWords, { cwd: process.cwd(), clock: systemClock, logWriter, print }, stop.signal);
}

/** A defect: everything expected was handled where it belongs. */
function crash(error: unknown): void {
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
  await Promise.race([logWriter.flush(), systemClock.sleep(lastWordsWithinMs, new AbortController().signal)]);
  for (const stream of openedStreams) await new Promise((resolve) => stream.write("", resolve));
  process.exit(code);
}
