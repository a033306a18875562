import { LinuxContainerResources } from "../connections/cri/index.ts";
import { type Pod, type PodUid, uidOf } from "../ground/model/index.ts";
import { showPlacement } from "../node/metrics/index.ts";
import {
  CpusetKeeper,
  cpusetsInForce,
  deviceReport,
  diskFiles,
  findRunning,
  type KeptContainer,
  Placement,
  placementReport,
  placementSettingsOf,
  placementView,
} from "../pod/resources/index.ts";
import type { NodeContext } from "../pod/runtime/index.ts";
import type { DeviceParts } from "./build-devices.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

/** Who runs on which CPUs with which memory, and what keeps it so. */
export interface PlacementParts {
  readonly placement: Placement;
  readonly cpusets: CpusetKeeper;
  /** Who has what, for people. */
  report(pods: readonly Pod[]): Promise<object>;
}

export function buildPlacement(
  base: Foundation,
  {
    context,
    sight,
    devices,
  }: { readonly context: NodeContext; readonly sight: PodSight; readonly devices: DeviceParts },
): PlacementParts {
  const { config, host, rootDir, cri, metrics, scope } = base;
  const log = base.log.named("placement");
  const placement = new Placement(
    placementSettingsOf(config, host.facts.machine.memoryBytes),
    {
      rootDir,
      files: diskFiles,
      clock: base.clock,
      log,
      readTopology: host.readTopology,
      findRunning: findRunning(cri.runtime, scope.signal),
      holds: (uid) => sight.holds(uid),
      metrics: metrics.placement.hooks,
    },
    (numa) => [devices.provider(numa, (uid) => sight.isHere(uid))],
  );
  const cpusets = new CpusetKeeper(scope, {
    clock: base.clock,
    log,
    periodMs: config.kubelet.cpuManagerReconcilePeriodMs,
    pinsCpus: placement.pinsCpus,
    running: () => runningContainers(sight),
    wantedFor: ({ pod, name }) => (isAtWork(sight, uidOf(pod)) ? placement.of(uidOf(pod), name).cpus : ""),
    async tellRuntime(containerId, cpusetCpus, signal) {
      const linux = LinuxContainerResources.fromPartial({ cpusetCpus });
      await cri.runtime.updateContainerResources(
        { containerId, linux, windows: undefined, annotations: {} },
        { signal },
      );
    },
    inForce: cpusetsInForce(host.facts.cgroups, host.cgroupFiles, () => context.cgroups),
  });
  placement.onMoved(() => cpusets.wake());
  showPlacement(metrics.figures.main, () => placementView(placement));
  return {
    placement,
    cpusets,
    async report(pods) {
      // Where nothing is given out, nobody has needed to know the machine.
      const topology = placement.given?.topology ?? (await host.readTopology());
      const { inventory, state } = devices.manager;
      return {
        ...placementReport(placementView(placement, topology), placement.settings, pods),
        devices: deviceReport(inventory, state, pods),
      };
    },
  };
}

/** Whether containers of the pod are wanted, or still run. */
function isAtWork({ table }: PodSight, uid: PodUid): boolean {
  const step = table.stateOf(uid)?.step;
  return step === "running" || step === "terminating";
}

/** Of pods that are worked on: others may have a place that is not known yet. */
function* runningContainers({ table, observer }: PodSight): Generator<KeptContainer> {
  for (const { uid, containers } of observer.all()) {
    const worker = table.get(uid);
    if (worker?.type !== "pod") continue;
    for (const { id, name, state } of containers) if (state === "running") yield { id, name, pod: worker.pod };
  }
}
