// A sandbox as dockershim notes it on disk, so that its network can be released when Docker has lost the container. Pure.
import { fieldsOf, numberIn, objectIn, textIn } from "./engine/index.ts";

export interface CheckpointPort {
  readonly protocol: string;
  readonly containerPort: number;
  readonly hostPort: number;
  readonly hostIp: string;
}

export interface SandboxCheckpoint {
  readonly pod: string;
  readonly namespace: string;
  readonly hostNetwork: boolean;
  readonly ports: readonly CheckpointPort[];
}

/** The text form that Go gives the data; its sum says whether the file is whole. */
function dump(packages: { data: string; port: string }, { ports, hostNetwork }: SandboxCheckpoint): string {
  const { data, port } = packages;
  const listed = ports.map(
    (each) =>
      `<*>{Protocol:(*${port}.Protocol)${each.protocol} ContainerPort:(*int32)${each.containerPort} ` +
      `HostPort:(*int32)${each.hostPort} HostIP:(string)${each.hostIp}}`,
  );
  const mappings = ports.length === 0 ? "<nil>" : `[${listed.join(" ")}]`;
  return `(${data}.CheckpointData){PortMappings:([]*${port}.PortMapping)${mappings} HostNetwork:(bool)${hostNetwork}}`;
}

const dockershim = { data: "dockershim", port: "dockershim" };
const criDockerd = { data: "core", port: "config" };

/** FNV-1a of 32 bits. */
function sumOf(content: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(content)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

export function checksum(checkpoint: SandboxCheckpoint): number {
  return sumOf(dump(dockershim, checkpoint));
}

export function checkpointText(checkpoint: SandboxCheckpoint): string {
  const { pod, namespace, hostNetwork, ports } = checkpoint;
  const mappings = ports.map(({ protocol, containerPort, hostPort, hostIp }) => ({
    protocol,
    container_port: containerPort,
    host_port: hostPort,
    ...(hostIp !== "" && { host_ip: hostIp }),
  }));
  return JSON.stringify({
    version: "v1",
    name: pod,
    namespace,
    data: { ...(mappings.length > 0 && { port_mappings: mappings }), ...(hostNetwork && { host_network: true }) },
    checksum: checksum(checkpoint),
  });
}

/** Undefined for a file that is not whole. What dockershim or cri-dockerd wrote is understood too. */
export function parseCheckpoint(content: string): SandboxCheckpoint | undefined {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    return undefined;
  }
  const fields = fieldsOf(value);
  const data = objectIn(fields, "data");
  const listed = data["port_mappings"];
  const ports = (Array.isArray(listed) ? listed : []).map(fieldsOf).map((port) => ({
    protocol: textIn(port, "protocol"),
    containerPort: numberIn(port, "container_port"),
    hostPort: numberIn(port, "host_port"),
    hostIp: textIn(port, "host_ip"),
  }));
  const checkpoint = {
    pod: textIn(fields, "name"),
    namespace: textIn(fields, "namespace"),
    hostNetwork: data["host_network"] === true,
    ports,
  };
  const found = numberIn(fields, "checksum");
  const sums = [dockershim, criDockerd].map((packages) => sumOf(dump(packages, checkpoint)));
  return sums.includes(found) ? checkpoint : undefined;
}
