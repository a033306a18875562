import type { Agent } from "../../src/agent/agent.ts";
import { buildAgent } from "../../src/agent/build-agent.ts";
import { kubeconfigCluster } from "../../src/agent/cluster-parts.ts";
import type { Host } from "../../src/agent/inputs.ts";
import { systemHost } from "../../src/agent/system-host.ts";
import { criConnection } from "../../src/connections/cri/index.ts";
import { ensureDirectory, prepareDirectories } from "../../src/connections/host/index.ts";
import { type LedgerView, type Logger, onAbort, TaskScope } from "../../src/ground/base/index.ts";
import { type AgentConfig, loadConfig } from "../../src/ground/config/index.ts";
import type { PodLedger, PodUid } from "../../src/ground/model/index.ts";
import { memoryIo } from "../support/config-io.ts";
import { type Machine, runtimeSocket } from "./machine/machine.ts";
import { type Pressure, wantedMemory } from "./machine/pressure.ts";
import type { Life } from "./machine/timeline.ts";
import { nodeName, nodeToken } from "./neighbours/api.ts";
import type { Trace } from "./neighbours/trace.ts";

const configFile = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
cgroupDriver: cgroupfs
failSwapOn: false
containerRuntimeEndpoint: unix://${runtimeSocket}
clusterDNS: ["10.96.0.10"]
clusterDomain: cluster.local
podLogsDir: /var/log/pods
evictionHard: { memory.available: "${wantedMemory.atOnce}", nodefs.available: "10%", imagefs.available: "15%" }
evictionSoft: { memory.available: "${wantedMemory.afterAWhile}" }
evictionSoftGracePeriod: { memory.available: "${wantedMemory.whileMs / 1000}s" }
evictionMaxPodGracePeriod: 20
evictionPressureTransitionPeriod: 30s
featureGates: { InPlacePodLevelResourcesVerticalScaling: true }
`;

const kubeconfig = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  "current-context": "sim",
  contexts: [{ name: "sim", context: { cluster: "sim", user: "sim" } }],
  clusters: [{ name: "sim", cluster: { server: "https://10.0.0.1:6443", "insecure-skip-tls-verify": true } }],
  users: [{ name: "sim", user: { token: nodeToken } }],
});

export const rootDir = "/var/lib/kubelet";
export const manifestDir = "/etc/kubernetes/manifests";

export async function agentConfig(): Promise<AgentConfig> {
  const argv = ["--kubeconfig=/etc/kubeconfig", "--config=/etc/kubelet.yaml", `--hostname-override=${nodeName}`];
  const result = await loadConfig(argv, memoryIo({ "/etc/kubelet.yaml": configFile }));
  if (result.kind !== "config") throw new Error(`the configuration is not valid: ${JSON.stringify(result)}`);
  return result.config;
}

export function writeKubeconfig({ disk }: Machine): void {
  disk.addFile("/etc/kubeconfig", kubeconfig);
}

export interface RunningAgent {
  readonly life: Life;
  readonly scope: TaskScope;
  /** Rejects when the agent could not start. */
  readonly started: Promise<void>;
  /** What it says of a pod to those who ask why. */
  ledger(uid: string): LedgerView | undefined;
}

/** What surrounds the agent's process. */
export interface AgentWorld {
  readonly machine: Machine;
  readonly pressure: Pressure;
  readonly trace: Trace;
  /** Hears what the agent says it does. */
  readonly onLog: (message: string, fields: object | undefined, life: Life) => void;
}

/** Begins one life of the agent: what its process does, apart from its listeners. */
export function beginAgent(world: AgentWorld, life: Life, config: AgentConfig): RunningAgent {
  const scope = new TaskScope();
  const log = traceLogger(world.trace, "agent", (message, fields) => world.onLog(message, fields, life));
  let ledger: PodLedger | undefined;
  const built = (agent: Agent): void => {
    ({ ledger } = agent.parts.base);
  };
  return {
    life,
    scope,
    started: start(world, life, config, log, scope, built),
    ledger: (uid) => ledger?.read(uid as PodUid),
  };
}

async function start(
  { machine, pressure }: AgentWorld,
  life: Life,
  config: AgentConfig,
  log: Logger,
  scope: TaskScope,
  built: (agent: Agent) => void,
): Promise<void> {
  const clock = machine.timeline.clock(life);
  const agent = buildAgent({
    config,
    clock,
    random: Math.random,
    log,
    process: {
      pid: 1,
      isRoot: true,
      commandLine: ["nodelet"],
      workDir: "/",
      homeDir: undefined,
      environment: { NODELET_HOST_SETTINGS: "leave" },
      service: { notifySocket: undefined, watchdogUsec: undefined, watchdogPid: undefined },
      logControl: { stalledMs: 0, setVerbosity: () => undefined } as never,
      configz: () => ({}),
      reloadConfig: async () => ({ kind: "config", config }),
      memory: () => ({ rssBytes: 0, heapUsedBytes: 0, heapTotalBytes: 0 }),
      activeResources: () => [],
      currentConfig: () => config,
      onSettings: () => {},
    },
    host: await simulatedHost(pressure),
    connectRuntime: (ports) => criConnection(config, ports),
    cluster: kubeconfigCluster(clock),
    scope,
  });
  built(agent);
  const { ending } = agent.parts.base;
  onAbort(scope.signal, () => ending.request("its loops have ended"));
  for (const stage of agent.stages) {
    ending.signal.throwIfAborted();
    await stage.start();
  }
}

/** The machine that the stand-ins make up; nobody else is on it, and nobody asks the agent anything. */
async function simulatedHost(pressure: Pressure): Promise<Host> {
  return {
    ...(await systemHost()),
    pressure,
    swaps: async () => [],
    holdLock: async () => {},
    tuneProcess: async () => {},
    listen: async () => {},
    servePodResources: async () => ({ [Symbol.asyncDispose]: async () => {} }),
    async openDevicePlugins(directory) {
      await ensureDirectory(directory, 0o755);
      return { wereThere: true, [Symbol.asyncDispose]: async () => {} };
    },
    async prepareDirectories({ kubelet }, directory, log) {
      await ensureDirectory(directory, 0o750);
      await prepareDirectories({ rootDir: directory, podLogsDir: kubelet.podLogsDir, checkpoints: false }, log);
      return { [Symbol.dispose]: () => {} };
    },
  };
}

/** Log lines are part of what two runs must agree in. */
function traceLogger(trace: Trace, name: string, heard: (message: string, fields: object | undefined) => void): Logger {
  const fieldsOf = (fields: object | undefined): string => (fields === undefined ? "" : ` ${shown(fields)}`);
  return {
    info: (message, fields) => {
      trace.add(name, `${message}${fieldsOf(fields)}`);
      heard(message, fields);
    },
    warn: (message, fields) => trace.add(name, `W ${message}${fieldsOf(fields)}`),
    error: (message, error, fields) => trace.add(name, `E ${message}: ${String(error)}${fieldsOf(fields)}`),
    debug() {},
    named: (component) => traceLogger(trace, `agent.${component}`, heard),
  };
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, each) => {
    if (typeof each === "bigint") return each.toString();
    return each instanceof Error ? each.message : each;
  });
}
