import { join } from "node:path";
import { untilAborted } from "../ground/base/index.ts";
import { isMirrorPod } from "../ground/model/index.ts";
import type { PodResourcesPorts } from "../node/server/index.ts";
import type { ClaimParts } from "./build-claims.ts";
import type { DeviceParts } from "./build-devices.ts";
import type { PlacementParts } from "./build-placement.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

/** Opens the socket at which others ask who has which devices, CPUs and memory. Rejects where it can't. */
export async function openPodResources(
  { host, config, rootDir, clock, metrics, scope }: Foundation,
  parts: {
    readonly devices: DeviceParts;
    readonly claims: ClaimParts | undefined;
    readonly placed: PlacementParts;
    readonly sight: PodSight;
  },
): Promise<void> {
  const { gates } = config;
  const settings = {
    showsActiveOnly: gates.enabled("KubeletPodResourcesListUseActivePods"),
    answersGet: gates.enabled("KubeletPodResourcesGet"),
    showsClaims: gates.enabled("KubeletPodResourcesDynamicResources"),
  };
  const socketPath = join(rootDir, "pod-resources", "kubelet.sock");
  const ports = { ...shown(parts), ...metrics.podResources };
  const opened = await host.servePodResources(socketPath, settings, ports, clock);
  scope.spawn("pod resources", async (signal) => {
    await using _ = opened;
    await untilAborted(signal);
  });
}

function shown({
  devices: { manager },
  claims,
  placed: { placement },
  sight,
}: Parameters<typeof openPodResources>[1]): Omit<PodResourcesPorts, "onRequest" | "onGetFailed"> {
  return {
    activePods: () => sight.table.activePods(),
    allPods: () => [...sight.wanted.pods.values()].filter((pod) => !isMirrorPod(pod)),
    devicesOf: (uid, container) =>
      [...(manager.state.get(uid)?.get(container) ?? [])].map(([resource, { byNode }]) => ({ resource, byNode })),
    cpusOf: (uid, container) => [...(placement.given?.cpus?.given.of(uid, container) ?? [])],
    memoryOf: (uid, container) => placement.given?.memory?.state.blocks.get(uid)?.get(container) ?? [],
    claimsOf: (pod, container) => claims?.shownTo(pod, container) ?? [],
    allocatable() {
      const { cpus, memory } = placement.given ?? {};
      return {
        devices: manager.healthyDevices(),
        cpus: cpus === undefined ? [] : [...cpus.topology.cpus.without(cpus.reserved)],
        memory: [...(memory?.state.machine ?? [])].flatMap(([node, { tables }]) =>
          [...tables].flatMap(([type, { allocatable }]) =>
            allocatable > 0 ? [{ type, bytes: allocatable, nodes: [node] }] : [],
          ),
        ),
      };
    },
  };
}
