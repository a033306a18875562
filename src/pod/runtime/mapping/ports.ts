import { isIPv6 } from "node:net";
import { type PortMapping, Protocol } from "../../../connections/cri/index.ts";
import { oncePer, table } from "../../../ground/base/index.ts";
import type { Container, ContainerPort, IdentifiedPod } from "../../../ground/model/index.ts";

/** Every declared port of the regular containers, published on the host or not. */
export function portMappings(pod: IdentifiedPod): PortMapping[] {
  return portMappingsOf(pod.spec.containers);
}

// The sandbox is described anew for each container that starts in it.
const portMappingsOf = oncePer((containers: readonly Container[]): PortMapping[] =>
  containers.flatMap((container) => [...distinctPorts(container).values()].map(mappingOf)),
);

/** A port declared twice under one name counts once; without a name the numbers, protocol and address are its name. */
function distinctPorts(container: Container): ReadonlyMap<string, ContainerPort> {
  const ports = new Map<string, ContainerPort>();
  for (const port of container.ports ?? []) {
    const { protocol = "", hostIP = "", hostPort = 0, containerPort } = port;
    const family = hostIP === "" ? "any" : isIPv6(hostIP) ? "v6" : "v4";
    const key = port.name || `${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`;
    if (!ports.has(key)) ports.set(key, port);
  }
  return ports;
}

function mappingOf(port: ContainerPort): PortMapping {
  return {
    protocol: protocols[port.protocol ?? ""] ?? Protocol.TCP,
    containerPort: port.containerPort,
    hostPort: port.hostPort ?? 0,
    hostIp: port.hostIP ?? "",
  };
}

const protocols: Readonly<Record<string, Protocol>> = table({
  TCP: Protocol.TCP,
  UDP: Protocol.UDP,
  SCTP: Protocol.SCTP,
});
