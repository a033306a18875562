import { criConnection } from "../connections/cri/index.ts";
import type { ServiceEnvironment } from "../connections/host/index.ts";
import type { Clock, LogWriter } from "../ground/base/index.ts";
import {
  type AgentConfig,
  announceConfig,
  announceUnheeded,
  complaintAbout,
  loadConfig,
  logSettingsOf,
  maskedFlags,
  systemIo,
  toConfigz,
  withoutHeaderValues,
} from "../ground/config/index.ts";
import { buildAgent } from "./build-agent.ts";
import type { AgentInputs, ClusterInputs } from "./inputs.ts";
import { systemHost } from "./system-host.ts";

/** The process as the daemon needs it. */
export interface DaemonProcess {
  /** The words after the program's name. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly service: ServiceEnvironment;
  readonly pid: number;
  readonly isRoot: boolean;
  readonly clock: Clock;
  readonly logWriter: LogWriter;
  /** Writes to stdout. */
  readonly print: (text: string) => void;
}

/** Loads the configuration and runs the agent until `stop` is aborted or `task` is done; the result is the exit code. */
export async function runDaemon(daemon: DaemonProcess, stop: AbortSignal, task?: AgentInputs["task"]): Promise<number> {
  const { clock, logWriter, pid, isRoot, service } = daemon;
  const log = logWriter.logger("agent");
  const loaded = await loadConfig(daemon.argv, systemIo(daemon.cwd));
  switch (loaded.kind) {
    case "help":
    case "version":
      daemon.print(loaded.text.endsWith("\n") ? loaded.text : `${loaded.text}\n`);
      return 0;
    case "invalid":
      announceConfig(loaded.warnings, logWriter);
      log.error("command failed", complaintAbout(loaded));
      return 1;
    case "config":
      break;
  }
  const { config } = loaded;
  logWriter.configure(logSettingsOf(config.kubelet.logging));
  announceConfig(config.warnings, logWriter);
  announceUnheeded(config, log.named("config"));
  for (const [name, value] of maskedFlags(config.flagTexts)) log.debug(1, `FLAG: --${name}=${JSON.stringify(value)}`);
  const configz = toConfigz(config);
  log.debug(5, "Effective configuration", { config: withoutHeaderValues(configz, config) });
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(daemon.env)) if (value !== undefined) environment[name] = value;
  try {
    const agent = buildAgent({
      config,
      clock,
      random: Math.random,
      log,
      process: {
        pid,
        isRoot,
        commandLine: ["nodelet", ...daemon.argv],
        workDir: daemon.cwd,
        homeDir: environment["HOME"],
        environment,
        service,
        logControl: logWriter,
        configz: () => configz,
      },
      host: await systemHost(),
      connectRuntime: (ports) => criConnection(config, ports),
      cluster: await clusterOf(config, clock),
      task,
    });
    await agent.run(stop);
    return 0;
  } catch (error) {
    log.error("command failed", error);
    const stack = error instanceof Error ? error.stack : undefined;
    if (stack !== undefined) log.debug(4, "Where it failed", { stack });
    return 1;
  }
}

/** Most machines of one person never load the code for a cluster. */
async function clusterOf({ flags }: AgentConfig, clock: Clock): Promise<ClusterInputs | undefined> {
  if (flags.kubeconfig === "") return undefined;
  return (await import("./cluster-parts.ts")).kubeconfigCluster(clock);
}
