import { join } from "node:path";
import type { AgentConfig } from "../config/index.ts";
import { cgroupReader, readCgroupOf } from "../host/index.ts";
import { sandboxImageOf } from "../images/index.ts";
import { cgroupNamed } from "../model/index.ts";
import type { NodeContext, PodObserver } from "../runtime/index.ts";
import type { StatsPorts } from "../server/index.ts";
import type { PodVolumes } from "../volumes/index.ts";
import type { AgentParts } from "./pods.ts";

/** Where the statistics of the node and of its pods come from. */
export function statisticsOf(
  parts: Pick<AgentParts, "config" | "rootDir" | "clock" | "cri" | "cgroups" | "machine">,
  { node, observer, volumes }: { readonly node: NodeContext; readonly observer: PodObserver; volumes: PodVolumes },
): StatsPorts {
  const { config, rootDir, clock, cri } = parts;
  const { kubelet, gates } = config;
  return {
    clock,
    random: Math.random,
    machine: parts.machine,
    sandboxImage: async (signal) => sandboxImageOf((await cri.runtime.status({ verbose: true }, { signal })).info),
    cgroups: cgroupReader(parts.cgroups),
    naming: node.cgroups,
    runtime: cri.runtime,
    images: cri.images,
    observed: () => observer.all(),
    measureVolumes: (uid, signal) => volumes.measure(uid, signal),
    settings: {
      nodeName: config.nodeName,
      rootDir,
      podsDir: join(rootDir, "pods"),
      podLogsDir: node.podLogsDir,
      startedAt: clock.now(),
      systemCgroups: systemCgroups(config, node),
      pressure: gates.enabled("KubeletPSI"),
      volumePeriodMs: kubelet.volumeStatsAggPeriodMs,
      hostRoot: "",
    },
  };
}

function systemCgroups({ kubelet, flags }: AgentConfig, node: NodeContext): StatsPorts["settings"]["systemCgroups"] {
  const named = (name: string): string | undefined =>
    name === "" ? undefined : cgroupNamed(node.cgroups.driver, name);
  return {
    // The agent's own place, wherever it was put.
    kubelet: readCgroupOf("self"),
    runtime: named(flags.runtimeCgroups),
    misc: named(kubelet.systemCgroups),
  };
}
