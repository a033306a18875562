import type { CriClient, RuntimeIdentity } from "../connections/cri/index.ts";
import type { Clock, Logger, TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { RecordNodeEvent } from "../ground/model/index.ts";
import { NodeKeeper, nodeSettingsOf, systemNetwork } from "../node/object/index.ts";
import { ImageList, nodeStatusImages } from "../pod/images/index.ts";
import type { RuntimeStatus } from "../pod/runtime/index.ts";
import type { Cluster } from "./cluster.ts";
import { type NodeResources, noDevices } from "./node-resources.ts";

/** Registers the node, reports its status and renews its lease, for as long as the scope lives. */
export function startNode(
  parts: {
    readonly cluster: Cluster;
    readonly config: AgentConfig;
    readonly resources: NodeResources;
    readonly cri: CriClient;
    readonly identity: RuntimeIdentity;
    readonly runtimeStatus: RuntimeStatus;
    readonly clock: Clock;
    readonly log: Logger;
    readonly recordNodeEvent: RecordNodeEvent;
    readonly volumesInUse: () => readonly string[];
  },
  scope: TaskScope,
): NodeKeeper {
  const { cluster, config, clock, cri, runtimeStatus, identity } = parts;
  const log = parts.log.named("node");
  const images = new ImageList(cri.images, clock);
  const keeper = new NodeKeeper(nodeSettingsOf(config), {
    clients: cluster.clients,
    clock,
    log,
    random: Math.random,
    recordEvent: parts.recordNodeEvent,
    takePodCidrs: async (cidrs, signal) => {
      const podCidr = cidrs.join(",");
      await cri.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } }, { signal });
      return true;
    },
    onRecovered: () => {
      for (const informer of [cluster.pods, cluster.services, cluster.runtimeClasses]) informer.hasten();
    },
    facts: {
      ...parts.resources.facts,
      rootFilesystemBytes: () => parts.resources.rootFilesystemBytes(),
      network: systemNetwork(clock),
      runtime: () => ({
        identity,
        problems: runtimeStatus.runtimeProblem === undefined ? [] : [runtimeStatus.runtimeProblem],
        networkProblem: runtimeStatus.networkProblem,
        handlers: runtimeStatus.handlers.map(({ name, features }) => ({
          name,
          ...(features === undefined ? {} : { features: { ...features } }),
        })),
        features:
          runtimeStatus.features === undefined
            ? undefined
            : { supplementalGroupsPolicy: runtimeStatus.features.supplementalGroupsPolicy },
      }),
      images: async (signal) => nodeStatusImages(await images.get(signal), config.kubelet.nodeStatusMaxImages),
      pressure: () => ({ memory: false, disk: false, pid: false }),
      volumesInUse: parts.volumesInUse,
      devices: () => noDevices,
      shutdownProblem: () => undefined,
      shortcoming: undefined,
    },
  });
  keeper.start(scope);
  return keeper;
}
