import { criConnection } from "../connections/cri/index.ts";
import type { ServiceEnvironment } from "../connections/host/index.ts";
import type { Clock, Logger, LogWriter } from "../ground/base/index.ts";
import { announceConfig, complaintAbout, flagsOf, type InvalidConfig, systemIo } from "../ground/config/index.ts";
import { readVersion, runTurns } from "../node/rollout/index.ts";
import type { OtherFigures } from "../node/server/index.ts";
import { openRollout, type Rollout } from "./build-rollout.ts";
import type { AgentInputs, Host } from "./inputs.ts";
import { runTurn } from "./run-turn.ts";
import { systemHost } from "./system-host.ts";

/** The process as the daemon needs it. */
export interface DaemonProcess {
  /** The words after the program's name. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly service: ServiceEnvironment;
  readonly pid: number;
  readonly uid: number;
  readonly clock: Clock;
  readonly logWriter: LogWriter;
  readonly memory: () => { readonly rssBytes: number; readonly heapUsedBytes: number; readonly heapTotalBytes: number };
  /** What keeps the event loop going, one word each. */
  readonly activeResources: () => readonly string[];
  /** Writes to stdout. */
  readonly print: (text: string) => void;
  /** Of what runs in this process beside the agent; shown with the agent's own. */
  readonly otherFigures?: OtherFigures | undefined;
}

/**
 * Loads the configuration and runs the agent until `stop` is aborted or `task` is done; the result is the exit code.
 * With another configuration the agent starts again in the same process: nobody has to start it again, and what could
 * not run with it is not left without an agent.
 */
export async function runDaemon(daemon: DaemonProcess, stop: AbortSignal, task?: AgentInputs["task"]): Promise<number> {
  const log = daemon.logWriter.logger("agent");
  const io = systemIo(daemon.cwd);
  const files = await readVersion(daemon.argv, { source: { from: "files" }, words: [] }, io);
  const { loaded } = files;
  if (loaded.kind === "help" || loaded.kind === "version") {
    daemon.print(loaded.text.endsWith("\n") ? loaded.text : `${loaded.text}\n`);
    return 0;
  }
  const flags = flagsOf(daemon.argv);
  if (flags === undefined) return refuse(loaded.kind === "invalid" ? loaded : undefined, daemon, log);
  let rollout: Rollout;
  try {
    const { argv, uid, clock } = daemon;
    rollout = await openRollout({ argv, flags, io, uid, clock, log: log.named("config") });
  } catch (error) {
    log.error("command failed", error);
    return 1;
  }
  let host: Host | undefined;
  const ended = await runTurns(rollout.keeper, files, async ({ config }) => {
    host ??= await systemHost();
    const connectRuntime: AgentInputs["connectRuntime"] = (ports) => criConnection(config, ports);
    return await runTurn({ daemon, config, host, connectRuntime, rollout, task, log }, stop);
  });
  if (ended.kind === "invalid") return refuse(ended.loaded, daemon, log);
  return ended.kind === "stopped" ? 0 : 1;
}

function refuse(loaded: InvalidConfig | undefined, { logWriter }: DaemonProcess, log: Logger): number {
  announceConfig(loaded?.warnings ?? [], logWriter);
  log.error("command failed", loaded === undefined ? "the command line can't be read" : complaintAbout(loaded));
  return 1;
}
