import type { TaskScope } from "../ground/base/index.ts";
import { mayChangeHost } from "../ground/config/index.ts";
import { UtilChains } from "../node/firewall/index.ts";
import type { NodeKeeper } from "../node/object/index.ts";
import { type DiskSample, DiskSamples, watchApi, watchDisk, watchEventLoop } from "../node/server/index.ts";
import { LogRotation, logRotationSettings } from "../pod/runtime/index.ts";
import { type PodVolumes, sweepOrphanedDirectories } from "../pod/volumes/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { EvictionWatches } from "./build-eviction.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

interface UpkeepParts {
  readonly sight: PodSight;
  readonly volumes: PodVolumes;
  readonly eviction: EvictionWatches;
  readonly cluster: Cluster | undefined;
  readonly keeper: NodeKeeper | undefined;
}

/** What keeps the node in order beside the pods: logs, storage limits, leftovers, and whether the agent is well. */
export interface Upkeep {
  /** What was left on the disk of the root directory in the last day. */
  diskHistory(): readonly DiskSample[];
  readonly rotation: LogRotation;
  start(scope: TaskScope): void;
}

export function buildUpkeep(base: Foundation, parts: UpkeepParts): Upkeep {
  const { clock, log, metrics, health } = base;
  const { sight, volumes } = parts;
  const rotation = buildLogRotation(base, sight);
  const sweep = {
    volumes,
    clock,
    log: log.named("volumes"),
    podsInUse: sight.podsInUse,
    onSweep: metrics.volumes.onSweep,
  };
  const chains = buildUtilChains(base);
  const samples = new DiskSamples();
  return {
    diskHistory: () => samples.read(),
    rotation,
    start(scope) {
      if (chains !== undefined) scope.spawn("iptables chains", (signal) => chains.run(signal));
      scope.spawn("log rotation", (signal) => rotation.run(signal));
      parts.eviction.start(scope);
      scope.spawn("orphaned pod directories", (signal) => sweepOrphanedDirectories(sweep, signal));
      watchEventLoop(base, scope);
      watchDisk(base.rootDir, { health, clock, samples }, scope);
      watchCluster(base, parts);
      health.watch("pods", () => {
        const problem = sight.runtimeStatus.runtimeProblem;
        return problem === undefined ? { state: "ok" } : { state: "waiting", reason: problem };
      });
    },
  };
}

/** Chains that other parts of a cluster expect; undefined where the agent is to leave the machine as it is. */
function buildUtilChains({ config, host, clock, log, process }: Foundation): UtilChains | undefined {
  if (!config.kubelet.makeIPTablesUtilChains || !mayChangeHost(process.environment)) return undefined;
  return new UtilChains({ clock, log: log.named("iptables"), run: host.runTool });
}

function watchCluster({ health, clock, config }: Foundation, { cluster, keeper }: UpkeepParts): void {
  if (cluster === undefined) return;
  const leaseSeconds = config.kubelet.nodeLeaseDurationSeconds;
  watchApi({ health, clock, pods: cluster.pods, lease: () => keeper?.lease.renewal, leaseSeconds });
}

/** Keeps the logs of the containers that the observer knows to run within the configured limits. */
function buildLogRotation({ config, cri, clock, log }: Foundation, { observer, statuses }: PodSight): LogRotation {
  const running = () => observer.runningContainers();
  const ports = { runtime: cri.runtime, clock, log: log.named("logs"), running };
  const rotation = new LogRotation(logRotationSettings(config), ports);
  statuses.onChange(() => rotation.noteChange());
  return rotation;
}
