import { normalize } from "node:path";
import {
  claimDirectory,
  ensureDirectory,
  readCgroupLayout,
  readMachine,
  readSwaps,
} from "../connections/host/index.ts";
import { type Clock, type Logger, onAbort, TaskScope } from "../ground/base/index.ts";
import { type AgentConfig, NODELET_VERSION } from "../ground/config/index.ts";
import { Figures, HealthRegistry, type LogVerbosity, type NodeApiPorts } from "../node/server/index.ts";
import { prepareDirectories } from "./directories.ts";
import { openDoors } from "./doors.ts";
import { Ending } from "./ending.ts";
import type { ProcessSurroundings } from "./images.ts";
import { LateReviews, LateViews } from "./late-views.ts";
import { holdLockFile } from "./lock-file.ts";
import { AgentMetrics, showIdentity } from "./metrics/index.ts";
import { tuneOwnProcess } from "./own-process.ts";
import { type RunningPods, startPods } from "./pods.ts";
import { RuntimeLink } from "./runtime-link.ts";
import { type ServiceEnvironment, ServiceManager } from "./service-manager.ts";
import { checkSwap } from "./swap.ts";
import { runWatchdog, watchdogSetting } from "./watchdog.ts";

/** What the process hands to the agent it runs. */
export interface AgentSurroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly logControl: LogVerbosity & { readonly stalledMs: number };
  /** The body of /configz. */
  readonly configz: () => unknown;
  readonly service: ServiceEnvironment;
  readonly surroundings: ProcessSurroundings;
  /** The words the agent was started with. */
  readonly commandLine: readonly string[];
  readonly pid: number;
  readonly isRoot: boolean;
  /** What the agent runs for, if not for ever: it ends when this is done. */
  readonly task?: (pods: RunningPods, signal: AbortSignal) => Promise<void>;
}

const logBlockedMs = 2 * 60_000;

/**
 * Starts the agent, works until `stop` is aborted or somebody else wants the lock file, and stops in the reverse order
 * of the start: loops of the pods, doors, runtime, signs of life. Containers are not touched. Rejects when the agent
 * cannot start or a loop it cannot do without dies.
 */
export async function runAgent(config: AgentConfig, around: AgentSurroundings, stop: AbortSignal): Promise<void> {
  const { log } = around;
  const ending = new Ending();
  using _ = onAbort(stop, () => ending.request("asked to stop"));
  try {
    await startAndWork(config, around, ending);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    // The start gave up because the agent ends; only the ending knows whether that is a failure.
    log.debug(2, "The start was given up", { error });
    await ending.reached();
  }
  log.info("Stopped; containers keep running");
}

async function startAndWork(config: AgentConfig, given: AgentSurroundings, ending: Ending): Promise<void> {
  const figures = new Figures();
  const metrics = new AgentMetrics(figures, given.clock);
  const { clock } = metrics;
  const around = { ...given, clock };
  const { log } = around;
  const { kubelet, flags } = config;
  const standalone = flags.kubeconfig === "";
  const rootDir = normalize(flags.rootDir).replace(/(.)\/$/, "$1");
  log.info("Starting nodelet", { version: NODELET_VERSION, kubeletVersion: config.reportedVersion, standalone });
  if (!around.isRoot) log.error("The agent needs to run as root", new Error("it does not run as uid 0"));

  const health = new HealthRegistry(clock);
  metrics.showHealth(health);
  await using signsOfLife = new TaskScope();
  ending.follow(signsOfLife);
  const service = giveSignsOfLife(config, around, { health, scope: signsOfLife, ending });
  await holdLockFile(flags, { clock, log, scope: signsOfLife, ending });

  checkSwap(kubelet.failSwapOn, await readSwaps());
  const [machine, cgroups] = await Promise.all([readMachine(), readCgroupLayout()]);
  log.info("Node identified", { nodeName: config.nodeName, bootId: machine.bootId, cgroupVersion: cgroups.version });
  showIdentity(figures, config, machine, cgroups.version);
  if (cgroups.version === 1) log.warn("cgroup v1 support is in maintenance mode, please migrate to cgroup v2");

  await ensureDirectory(rootDir, 0o750);
  using _onlyAgentHere = await claimDirectory(rootDir);
  const checkpoints = config.gates.enabled("ContainerCheckpoint");
  await prepareDirectories({ rootDir, podLogsDir: kubelet.podLogsDir, checkpoints }, log);
  await tuneOwnProcess(kubelet, { clock, log, scope: signsOfLife });

  using link = new RuntimeLink(kubelet, { clock, log: log.named("cri"), health, onCall: metrics.runtime.onCall });
  await using doors = new TaskScope();
  ending.follow(doors);
  const views = new LateViews();
  const { configz, logControl } = around;
  const reviews = new LateReviews();
  const doorPorts: NodeApiPorts = {
    views,
    runtimeViews: views,
    runtime: link.cri.runtime,
    health,
    figures,
    reviews,
    configz,
    commandLine: around.commandLine,
    facts: { version: NODELET_VERSION, kubeletVersion: config.reportedVersion, startedAt: clock.now() },
    logVerbosity: logControl,
    clock,
    log: log.named("server"),
  };
  await openDoors(config, rootDir, doorPorts, doors);
  // Ready means that the agent answers; a runtime that comes late must not run into systemd's start timeout.
  const waiting = `Waiting for the container runtime at ${kubelet.containerRuntimeEndpoint}`;
  await service.tell({ ready: true, status: waiting });

  const runtime = await link.connect(ending.signal);
  if (runtime.isOutdated) metrics.runtime.isOutdated();
  await service.tell({ status: `Connected to ${runtime.identity.name} ${runtime.identity.version}` });
  await using podLoops = new TaskScope();
  ending.follow(podLoops);
  const { surroundings } = around;
  const parts = {
    config,
    rootDir,
    clock,
    log,
    health,
    metrics,
    cri: link.cri,
    runtime,
    machine,
    cgroups,
    surroundings,
  };
  const pods = await startPods(parts, podLoops);
  views.attach(pods.views, pods.runtimeViews);
  figures.attach(pods.statistics, podLoops);
  if (pods.reviews !== undefined) reviews.attach(pods.reviews);
  log.info("Started nodelet");
  const { task } = around;
  if (task !== undefined) {
    podLoops.spawn("the task at hand", async (signal) => {
      await task(pods, signal);
      ending.request("the task is done");
    });
  }
  await ending.reached();
}

/** Answers systemd's watchdog from here on, and tells systemd as soon as the agent is about to end. */
function giveSignsOfLife(
  config: AgentConfig,
  around: AgentSurroundings,
  { health, scope, ending }: { health: HealthRegistry; scope: TaskScope; ending: Ending },
): ServiceManager {
  const { clock, log, logControl } = around;
  health.watch("log", () =>
    logControl.stalledMs >= logBlockedMs ? { state: "failed", reason: "logging blocked" } : { state: "ok" },
  );
  const service = new ServiceManager(around.service.notifySocket, log);
  onAbort(ending.signal, () => {
    log.info("Stopping", { why: ending.signal.reason });
    scope.spawn("say stopping", () => service.tell({ stopping: true, status: "Stopping" }));
  });

  if (!config.gates.enabled("SystemdWatchdog")) return service;
  const setting = watchdogSetting(around.service, around.pid);
  if (typeof setting === "string") log.debug(1, "No watchdog", { why: setting });
  else if (!service.listens) log.warn("systemd wants signs of life, but NOTIFY_SOCKET is not set; none are sent");
  else {
    log.info("Giving systemd signs of life", { everyMs: setting.timeoutMs / 2 });
    const ports = { health, service, clock, log, random: Math.random };
    scope.spawn("watchdog", (signal) => runWatchdog(setting.timeoutMs, ports, signal));
  }
  return service;
}
