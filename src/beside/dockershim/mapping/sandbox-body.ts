import { NamespaceMode, type PodSandboxConfig, type PortMapping, Protocol } from "../../../connections/cri/index.ts";
import { createdAtLabel, labelsFor, runtimeHandlerLabel } from "./labels.ts";
import { cgroupParentFor } from "./resources.ts";
import { groupsOf, sandboxSecurityOptions, userOf } from "./security.ts";

export interface SandboxTraits {
  readonly image: string;
  /** Nanoseconds since 1970. */
  readonly createdAt: bigint;
  readonly cgroupDriver: string;
  /** Who gives pods their network: CNI plugins, or Docker's own bridge. */
  readonly network: "cni" | "docker";
  /** Of Docker's runtimes; empty: its usual one. */
  readonly runtimeHandler: string;
  readonly lowestOomScore: number;
}

const sandboxCpuShares = 2;
const sandboxOomScore = -998;
const sharedMemoryBytes = 64 * 1024 * 1024;

/** The container that holds a pod's namespaces. */
export function sandboxBody(config: PodSandboxConfig, traits: SandboxTraits): object {
  const security = config.linux?.securityContext;
  const namespaces = security?.namespaceOptions;
  const user = userOf(security);
  const handler = traits.runtimeHandler;
  const ours = {
    [createdAtLabel]: String(traits.createdAt),
    ...(handler !== "" && { [runtimeHandlerLabel]: handler }),
  };
  const ports = traits.network === "docker" ? portFields(config.portMappings) : { exposed: {}, bindings: {} };
  return {
    Image: traits.image,
    Hostname: config.hostname,
    ...(user !== undefined && { User: user }),
    Labels: labelsFor(config, "podsandbox", ours),
    ExposedPorts: ports.exposed,
    HostConfig: {
      NetworkMode: networkMode(namespaces?.network, traits.network),
      IpcMode: namespaces?.ipc === NamespaceMode.NODE ? "host" : "shareable",
      ...(namespaces?.pid === NamespaceMode.NODE && { PidMode: "host" }),
      CgroupParent: cgroupParentFor(config.linux?.cgroupParent ?? "", traits.cgroupDriver),
      CpuShares: sandboxCpuShares,
      OomScoreAdj: Math.max(sandboxOomScore, traits.lowestOomScore),
      ShmSize: sharedMemoryBytes,
      SecurityOpt: sandboxSecurityOptions(security),
      Sysctls: config.linux?.sysctls ?? {},
      GroupAdd: groupsOf(security),
      ReadonlyRootfs: security?.readonlyRootfs ?? false,
      Privileged: security?.privileged ?? false,
      PortBindings: ports.bindings,
      RestartPolicy: { Name: "no" },
      LogConfig: { Type: "none" },
      ...(handler !== "" && handler !== "docker" && { Runtime: handler }),
    },
  };
}

function networkMode(mode: NamespaceMode | undefined, network: SandboxTraits["network"]): string {
  if (mode === NamespaceMode.NODE) return "host";
  return network === "cni" ? "none" : "default";
}

const protocols = new Map<Protocol, string>([
  [Protocol.TCP, "tcp"],
  [Protocol.UDP, "udp"],
  [Protocol.SCTP, "sctp"],
]);

export function protocolWord(protocol: Protocol): string {
  return protocols.get(protocol) ?? "tcp";
}

function portFields(mappings: readonly PortMapping[]) {
  const exposed: Record<string, object> = {};
  const bindings: Record<string, object[]> = {};
  for (const { protocol, containerPort, hostPort, hostIp } of mappings) {
    if (hostPort === 0) continue;
    const key = `${containerPort}/${protocolWord(protocol)}`;
    exposed[key] = {};
    bindings[key] = [...(bindings[key] ?? []), { HostPort: String(hostPort), HostIp: hostIp }];
  }
  return { exposed, bindings };
}
