import { performance } from "node:perf_hooks";
import { type Machine, type ProcessUsage, readProcess } from "../../connections/host/index.ts";
import type { Clock } from "../../ground/base/index.ts";
import { type AgentConfig, NODELET_VERSION } from "../../ground/config/index.ts";
import type { MetricRegistries } from "../server/index.ts";

const stageLabels = { alpha: "ALPHA", beta: "BETA", GA: "", deprecated: "DEPRECATED" } as const;
const none: readonly never[] = [];
const notBuiltByGo = { git_commit: "", git_tree_state: "", build_date: "", go_version: "", compiler: "" };

/** What this agent is: versions, gates, the name of its node. */
export function showIdentity(
  { main }: MetricRegistries,
  config: AgentConfig,
  machine: Machine,
  cgroupVersion: number,
): void {
  const { nodeName, gates, reportedVersion } = config;
  const [, major = "", minor = ""] = /^v?(\d+)\.(\d+)/.exec(reportedVersion) ?? [];
  main.gauge("kubelet_node_name", "[ALPHA] 1 for the name of this node", ["node"]).set({ node: nodeName }, 1);
  main.gauge("kubelet_cgroup_version", "[ALPHA] Version of this node's cgroups").set({}, cgroupVersion);
  main
    .gauge("kubernetes_build_info", "[ALPHA] 1 for the version of Kubernetes that this agent stands for", [
      "major",
      "minor",
      "git_version",
      "git_commit",
      "git_tree_state",
      "build_date",
      "go_version",
      "compiler",
      "platform",
    ])
    .set({ ...notBuiltByGo, major, minor, git_version: reportedVersion, platform: `linux/${machine.architecture}` }, 1);
  main.gauge("nodelet_build_info", "1 for the version of this agent", ["version"]).set({ version: NODELET_VERSION }, 1);
  main.read("kubernetes_feature_enabled", "gauge", "[BETA] 1 for gates that are on", ["name", "stage"], () =>
    gates.all.map(({ name, stage, enabled }) => [{ name, stage: stageLabels[stage] }, enabled ? 1 : 0]),
  );
}

const processFigures: readonly (readonly [string, "counter" | "gauge", string, keyof ProcessUsage])[] = [
  ["process_cpu_seconds_total", "counter", "Processor time that the agent has used, in seconds", "cpuSeconds"],
  ["process_virtual_memory_bytes", "gauge", "Address space of the agent", "virtualBytes"],
  ["process_resident_memory_bytes", "gauge", "Resident memory of the agent", "residentBytes"],
  ["process_open_fds", "gauge", "Open files of the agent", "openFiles"],
  ["process_max_fds", "gauge", "Files that the agent may open", "mostOpenFiles"],
  ["nodelet_wakeups_total", "counter", "How often the agent's main thread slept and was woken", "wakeUps"],
];
const oneScrapeMs = 100;

/** What the agent's own process uses. Nothing is measured while nobody asks. */
export function showProcess({ main, probes, slis }: MetricRegistries, clock: Clock): void {
  let last: { readonly at: number; readonly usage: ProcessUsage | undefined } | undefined;
  const usage = (): ProcessUsage | undefined => {
    const now = clock.monotonic();
    if (last === undefined || now - last.at > oneScrapeMs) last = { at: now, usage: readProcess("self") };
    return last.usage;
  };
  const figure = (field: keyof ProcessUsage) => () => {
    const value = usage()?.[field];
    return value === undefined ? none : [[{}, value] as const];
  };
  for (const [name, type, help, field] of processFigures) main.read(name, type, help, none, figure(field));
  const startHelp = "When the agent was started, in seconds since 1970";
  for (const registry of [main, probes, slis]) {
    registry.read("process_start_time_seconds", "gauge", startHelp, none, figure("startedAt"));
  }
  const loop = (field: "active" | "idle") => () => [[{}, performance.eventLoopUtilization()[field] / 1000] as const];
  const name = "nodelet_event_loop";
  main.read(`${name}_active_seconds_total`, "counter", "Time that the event loop worked", none, loop("active"));
  main.read(`${name}_idle_seconds_total`, "counter", "Time that the event loop had nothing to do", none, loop("idle"));
}
