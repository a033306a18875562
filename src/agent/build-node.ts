import type { RecordNodeEvent } from "../ground/model/index.ts";
import type { NodePressure } from "../node/eviction/index.ts";
import {
  type NetworkFacts,
  type NodeFacts,
  NodeKeeper,
  nodeSettingsOf,
  type RuntimeFacts,
} from "../node/object/index.ts";
import { ImageList, nodeStatusImages } from "../pod/images/index.ts";
import type { NodeResources } from "../pod/resources/index.ts";
import { PodCidrs, type RuntimeStatus } from "../pod/runtime/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { DeviceParts } from "./build-devices.ts";
import type { Foundation } from "./foundation.ts";

/** Who registers the node, reports its status and renews its lease. */
export function buildNode(
  base: Foundation,
  parts: {
    readonly cluster: Cluster;
    readonly network: NetworkFacts;
    readonly resources: NodeResources;
    readonly devices: DeviceParts;
    readonly runtimeStatus: RuntimeStatus;
    readonly recordNodeEvent: RecordNodeEvent;
    readonly volumesInUse: () => readonly string[];
    readonly shutdownProblem: () => string | undefined;
    readonly pressure: NodePressure;
    readonly config: NodeFacts["config"];
    readonly cloud: NodeFacts["cloud"];
  },
): NodeKeeper {
  const { config, clock, cri, log, random, link, metrics, wakes } = base;
  const { cluster, resources, devices, runtimeStatus } = parts;
  const images = new ImageList(cri.images, clock);
  const podCidrs = new PodCidrs(cri.runtime);
  const keeper = new NodeKeeper(nodeSettingsOf(config), {
    own: cluster.own,
    csiNode: cluster.csiNode,
    clients: cluster.clients,
    clock,
    log: log.named("node"),
    random,
    recordEvent: parts.recordNodeEvent,
    takePodCidrs: (cidrs, signal) => podCidrs.tell(cidrs, signal),
    onRecovered: () => {
      for (const informer of [cluster.pods, cluster.services, cluster.runtimeClasses]) informer.hasten();
    },
    facts: {
      ...resources.facts,
      rootFilesystemBytes: () => resources.rootFilesystemBytes(),
      network: parts.network,
      runtime: () => runtimeFacts(link.connected?.identity, runtimeStatus),
      images: async (signal) => nodeStatusImages(await images.get(signal), config.kubelet.nodeStatusMaxImages),
      pressure: () => pressureFacts(parts.pressure),
      volumesInUse: parts.volumesInUse,
      devices: () => ({ ...devices.manager.amounts(), hasCheckpoint: devices.wereThere() }),
      shutdownProblem: parts.shutdownProblem,
      shortcoming: undefined,
      config: parts.config,
      cloud: parts.cloud,
    },
  });
  wakes.node.on(() => keeper.wake());
  cluster.own.onNode(metrics.startup.onNode);
  return keeper;
}

function pressureFacts({ conditions }: NodePressure): ReturnType<NodeFacts["pressure"]> {
  return {
    memory: conditions.includes("MemoryPressure"),
    disk: conditions.includes("DiskPressure"),
    pid: conditions.includes("PIDPressure"),
  };
}

function runtimeFacts(identity: RuntimeFacts["identity"], status: RuntimeStatus): RuntimeFacts {
  const { runtimeProblem, networkProblem, handlers, features } = status;
  return {
    identity,
    problems: runtimeProblem === undefined ? [] : [runtimeProblem],
    networkProblem,
    handlers: handlers.map(({ name, features: of }) => ({
      name,
      ...(of === undefined ? {} : { features: { ...of } }),
    })),
    features: features === undefined ? undefined : { supplementalGroupsPolicy: features.supplementalGroupsPolicy },
  };
}
