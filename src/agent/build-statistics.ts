import { join } from "node:path";
import { cgroupReader, readCgroupOf } from "../connections/host/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { StatsPorts } from "../node/server/index.ts";
import { sandboxImageOf } from "../pod/images/index.ts";
import type { NodeContext, PodObserver } from "../pod/runtime/index.ts";
import type { PodVolumes } from "../pod/volumes/index.ts";
import type { Foundation } from "./foundation.ts";

/** Where the statistics of the node and of its pods come from; throws while the runtime has not answered yet. */
export function buildStatistics(
  base: Foundation,
  { node, observer, volumes }: { readonly node: NodeContext; readonly observer: PodObserver; volumes: PodVolumes },
): StatsPorts {
  const { config, rootDir, clock, cri, host, random } = base;
  const { kubelet, gates } = config;
  return {
    clock,
    random,
    machine: host.facts.machine,
    sandboxImage: async (signal) => sandboxImageOf((await cri.runtime.status({ verbose: true }, { signal })).info),
    cgroups: cgroupReader(host.facts.cgroups),
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
      systemCgroups: systemCgroups(config),
      pressure: gates.enabled("KubeletPSI"),
      volumePeriodMs: kubelet.volumeStatsAggPeriodMs,
      hostRoot: "",
    },
  };
}

function systemCgroups({ kubelet, flags }: AgentConfig): StatsPorts["settings"]["systemCgroups"] {
  // As they are written: no driver has a say in where they are.
  const named = (name: string): string | undefined => (name === "" ? undefined : join("/", name));
  return {
    // The agent's own place, wherever it was put.
    kubelet: readCgroupOf("self"),
    runtime: named(flags.runtimeCgroups),
    misc: named(kubelet.systemCgroups),
  };
}
