import { type Clock, type Logger, onAbort, unlessAborted } from "../ground/base/index.ts";
import {
  type AgentConfig,
  announceConfig,
  announceUnheeded,
  loadConfig,
  logSettingsOf,
  maskedFlags,
  systemIo,
  toConfigz,
  withoutHeaderValues,
} from "../ground/config/index.ts";
import type { TurnOutcome } from "../node/rollout/index.ts";
import { buildAgent } from "./build-agent.ts";
import type { Rollout } from "./build-rollout.ts";
import type { DaemonProcess } from "./daemon.ts";
import type { AgentInputs, ClusterInputs, ProcessFacts } from "./inputs.ts";

interface TurnInputs extends Pick<AgentInputs, "config" | "host" | "connectRuntime" | "task" | "log"> {
  readonly daemon: DaemonProcess;
  readonly rollout: Rollout;
}

/** A turn that does not end for another one ends with the process: whoever supervises it begins anew. */
const longestEndMs = 60_000;

/** Runs the agent with one configuration, until it is stopped, fails or is to have another one. */
export async function runTurn(inputs: TurnInputs, stop: AbortSignal): Promise<TurnOutcome> {
  const { daemon, config, log, host, connectRuntime, rollout, task } = inputs;
  announce(config, daemon, log);
  const overdue = new AbortController();
  const beOverdue = (): void => overdue.abort(new Error(`the agent did not end within ${longestEndMs} ms`));
  try {
    const agent = buildAgent({
      config,
      clock: daemon.clock,
      random: Math.random,
      log,
      process: processFacts(config, daemon),
      host,
      connectRuntime,
      tracing: await tracingOf(config, daemon.clock, log),
      cluster: await clusterOf(config, daemon.clock),
      ...(task === undefined ? { rollout } : { task }),
    });
    const { ending } = agent.parts.base;
    using _ = onAbort(ending.signal, () => {
      if (ending.wantsAnotherTurn) daemon.clock.after(longestEndMs, beOverdue);
    });
    return { kind: await unlessAborted(agent.run(stop), overdue.signal) };
  } catch (error) {
    log.error("command failed", error);
    const stack = error instanceof Error ? error.stack : undefined;
    if (stack !== undefined) log.debug(4, "Where it failed", { stack });
    return { kind: "failed", error };
  }
}

function announce(config: AgentConfig, { logWriter }: DaemonProcess, log: Logger): void {
  logWriter.configure(logSettingsOf(config.kubelet.logging));
  // Who looks at the dashboard wants to know what was said before.
  if (config.flags.dashboardAddress !== undefined) logWriter.remember();
  announceConfig(config.warnings, logWriter);
  announceUnheeded(config, log.named("config"));
  for (const [name, value] of maskedFlags(config.flagTexts)) log.debug(1, `FLAG: --${name}=${JSON.stringify(value)}`);
  log.debug(5, "Effective configuration", { config: withoutHeaderValues(toConfigz(config), config) });
}

function processFacts(config: AgentConfig, daemon: DaemonProcess): ProcessFacts {
  const { logWriter, pid, uid, service, argv, cwd } = daemon;
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(daemon.env)) if (value !== undefined) environment[name] = value;
  let current = config;
  return {
    pid,
    isRoot: uid === 0,
    commandLine: ["nodelet", ...argv],
    workDir: cwd,
    homeDir: environment["HOME"],
    environment,
    service,
    logControl: logWriter,
    configz: () => toConfigz(current),
    currentConfig: () => current,
    reloadConfig: () => loadConfig(argv, systemIo(cwd)),
    memory: daemon.memory,
    activeResources: daemon.activeResources,
    otherFigures: daemon.otherFigures,
    onSettings(next) {
      current = next;
      logWriter.configure(logSettingsOf(next.kubelet.logging));
    },
  };
}

/** Following work through everything it awaits costs memory and time, also to those who want no traces. */
async function tracingOf(
  { kubelet, nodeName }: AgentConfig,
  clock: Clock,
  log: Logger,
): Promise<AgentInputs["tracing"]> {
  if (kubelet.tracing === undefined) return undefined;
  const { startTracing } = await import("../connections/otlp/index.ts");
  return startTracing(kubelet.tracing, nodeName, { clock, log: log.named("traces") });
}

/** Most machines of one person never load the code for a cluster. */
async function clusterOf({ flags }: AgentConfig, clock: Clock): Promise<ClusterInputs | undefined> {
  if (flags.kubeconfig === "") return undefined;
  return (await import("./cluster-parts.ts")).kubeconfigCluster(clock);
}
