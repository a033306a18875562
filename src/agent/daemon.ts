import type { ServiceEnvironment } from "../connections/host/index.ts";
import type { Clock, Logger, LogSettings, LogWriter } from "../ground/base/index.ts";
import {
  type AgentConfig,
  type ConfigWarning,
  describeProblem,
  effectiveFields,
  effectiveFlags,
  type InvalidConfig,
  type LoggingConfiguration,
  loadConfig,
  maskedFlags,
  systemIo,
  toConfigz,
} from "../ground/config/index.ts";
import { parseQuantity, wholeUnits } from "../ground/model/index.ts";
import { buildAgent } from "./build-agent.ts";
import type { AgentInputs, ClusterInputs } from "./inputs.ts";
import { type PodOutcome, readRunOnceArgs, waitForPods } from "./run-once.ts";
import { criConnection } from "./runtime-link.ts";
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

/**
 * Starts the pods that the sources name, waits until each runs or has failed, says so and leaves them running. The
 * exit code is 0 when all of them run or have succeeded.
 */
export async function runOnce(daemon: DaemonProcess, stop: AbortSignal): Promise<number> {
  const options = readRunOnceArgs(daemon.argv);
  if (options === undefined) {
    daemon.logWriter.plain("nodelet run-once: --timeout wants a number of seconds above 0\n");
    return 2;
  }
  let outcomes: readonly PodOutcome[] = [];
  const code = await runDaemon({ ...daemon, argv: options.argv }, stop, async (pods, signal) => {
    outcomes = await waitForPods(pods, { clock: daemon.clock, timeoutMs: options.timeoutMs }, signal);
    for (const { pod, text } of outcomes) daemon.print(`${pod}: ${text}\n`);
    if (outcomes.length === 0) daemon.print("no pod was found\n");
  });
  return code === 0 && (outcomes.length === 0 || outcomes.some(({ ok }) => !ok)) ? 1 : code;
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
      announce(loaded.warnings, logWriter);
      log.error("command failed", complaint(loaded));
      return 1;
    case "config":
      break;
  }
  const { config } = loaded;
  logWriter.configure(logSettings(config.kubelet.logging));
  announce(config.warnings, logWriter);
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

/** Deprecated flags are said as the kubelet says them, in plain words on stderr; the rest are log lines. */
function announce(warnings: readonly ConfigWarning[], logWriter: LogWriter): void {
  const log = logWriter.logger("config");
  for (const { kind, message } of warnings) {
    if (kind === "deprecated-flag") logWriter.plain(`${message}\n`);
    else if (kind === "note") log.info(message);
    else log.warn(message);
  }
}

/** One problem is a line; of several each has its own. */
function complaint({ message, step, problems }: InvalidConfig): string {
  if (problems.length < 2) return message;
  return [`${step}${problems.length} problems`, ...problems.map(describeProblem)].join("\n  ");
}

/** What a user asked for and does not get must not pass in silence. */
function announceUnheeded(config: AgentConfig, log: Logger): void {
  const given = [...effectiveFields(config), ...effectiveFlags(config)].filter(
    ({ origin }) => origin.from !== "default",
  );
  const settings = given.filter(({ effect }) => effect === "not yet").map(({ name }) => name);
  if (settings.length > 0) log.warn("These settings are read and checked, but nothing acts on them yet", { settings });
}

/** Headers for the manifest URL may carry credentials; a log is not the place for them. */
function withoutHeaderValues({ kubeletconfig }: ReturnType<typeof toConfigz>, { kubelet }: AgentConfig): unknown {
  const names = Object.keys(kubelet.staticPodURLHeader);
  if (names.length === 0) return kubeletconfig;
  return { ...kubeletconfig, staticPodURLHeader: Object.fromEntries(names.map((name) => [name, ["<masked>"]])) };
}

function logSettings({ format, options, ...logging }: LoggingConfiguration): LogSettings {
  const { splitStream, infoBufferSize } = options[format];
  const { verbosity, vmodule, flushFrequencyMs } = logging;
  const infoBufferBytes = splitStream ? Number(wholeUnits(parseQuantity(infoBufferSize))) : 0;
  return { format, verbosity, vmodule, splitStream, infoBufferBytes, flushFrequencyMs };
}
