import { type Container, containersOf, type IdentifiedPod, uidOf } from "../../../ground/model/index.ts";
import type {
  ContainerDevices,
  ContainerMemory,
  ContainerResources,
  DynamicResource,
  PodResources,
  TopologyInfo,
} from "./gen/pod-resources.ts";
import type { PodResourcesPorts, ShownClaim, ShownDevices, ShownMemory } from "./ports.ts";

/** Containers that run as long as the pod does: whoever watches devices has no use for others. */
function lastingContainers(pod: IdentifiedPod): readonly Container[] {
  return containersOf(pod).flatMap(({ kind, container }) =>
    kind === "sidecar" || kind === "regular" ? [container] : [],
  );
}

export function podMessage(pod: IdentifiedPod, ports: PodResourcesPorts, showsClaims: boolean): PodResources {
  const uid = uidOf(pod);
  const { name, namespace = "" } = pod.metadata;
  const containers = lastingContainers(pod).map(
    (container): ContainerResources => ({
      name: container.name,
      devices: ports.devicesOf(uid, container.name).flatMap(deviceMessages),
      cpuIds: ports.cpusOf(uid, container.name).map(BigInt),
      memory: ports.memoryOf(uid, container.name).map(memoryMessage),
      dynamicResources: showsClaims ? ports.claimsOf(pod, container).map(claimMessage) : [],
    }),
  );
  return { name, namespace, containers };
}

/** One for each device and each of its NUMA nodes. */
export function deviceMessages({ resource, byNode }: ShownDevices): ContainerDevices[] {
  return [...byNode]
    .sort(([a], [b]) => a - b)
    .flatMap(([node, ids]) =>
      [...ids].sort().map((id) => ({
        resourceName: resource,
        deviceIds: [id],
        topology: node < 0 ? undefined : topology([node]),
      })),
    );
}

export function memoryMessage({ type, bytes, nodes }: ShownMemory): ContainerMemory {
  return { memoryType: type, size: BigInt(bytes), topology: topology(nodes) };
}

function claimMessage({ name, namespace, devices }: ShownClaim): DynamicResource {
  return {
    claimName: name,
    claimNamespace: namespace,
    claimResources: devices.map(({ driver, pool, device, cdiIds }) => ({
      driverName: driver,
      poolName: pool,
      deviceName: device,
      cdiDevices: cdiIds.map((id) => ({ name: id })),
    })),
  };
}

function topology(nodes: readonly number[]): TopologyInfo {
  return { nodes: nodes.map((node) => ({ ID: BigInt(node) })) };
}

/** All ids of a resource together, as the first version of the service shows them. */
export function oldContainers(pod: IdentifiedPod, ports: PodResourcesPorts) {
  return pod.spec.containers.map(({ name }) => ({
    name,
    devices: ports.devicesOf(uidOf(pod), name).map(({ resource, byNode }) => ({
      resourceName: resource,
      deviceIds: [...new Set([...byNode.values()].flat())].sort(),
    })),
  }));
}
