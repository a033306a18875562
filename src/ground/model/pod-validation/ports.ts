import type { Container, ContainerPort, PodSpec } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { portName, portNumber } from "./names.ts";

const protocols: readonly string[] = ["SCTP", "TCP", "UDP"];

export function checkPorts(ports: readonly ContainerPort[], path: string, problems: ProblemList): void {
  const names = new Set<string>();
  for (const [index, { name = "", containerPort, hostPort = 0, protocol = "" }] of ports.entries()) {
    const at = `${path}[${index}]`;
    if (name !== "") {
      const details = portName(name);
      problems.invalidEach(`${at}.name`, name, details);
      if (details.length === 0 && names.has(name)) problems.duplicate(`${at}.name`, name);
      names.add(name);
    }
    if (containerPort === 0) problems.required(`${at}.containerPort`);
    else problems.invalidEach(`${at}.containerPort`, containerPort, portNumber(containerPort));
    if (hostPort !== 0) problems.invalidEach(`${at}.hostPort`, hostPort, portNumber(hostPort));
    if (protocol === "") problems.required(`${at}.protocol`);
    else if (!protocols.includes(protocol)) problems.unsupported(`${at}.protocol`, protocol, protocols);
  }
}

/** Containers that run at the same time cannot share a port of the host. `paths` are those of the containers. */
export function checkHostPortConflicts(
  containers: readonly (readonly [container: Container, path: string])[],
  problems: ProblemList,
): void {
  const taken = new Set<string>();
  for (const [{ ports = [] }, path] of containers) {
    for (const [index, { hostPort = 0, hostIP = "", protocol = "TCP" }] of ports.entries()) {
      if (hostPort === 0) continue;
      const key = `${protocol}/${hostIP}/${hostPort}`;
      if (taken.has(key)) problems.duplicate(`${path}.ports[${index}].hostPort`, key);
      taken.add(key);
    }
  }
}

/** On the host's network there is no translation between ports. */
export function checkHostNetworkPorts(spec: PodSpec, problems: ProblemList): void {
  if (spec.hostNetwork !== true) return;
  for (const list of ["containers", "initContainers"] as const) {
    for (const [index, { ports = [] }] of (spec[list] ?? []).entries()) {
      for (const [portIndex, { hostPort = 0, containerPort }] of ports.entries()) {
        if (hostPort === 0 || hostPort === containerPort) continue;
        problems.invalid(
          `spec.${list}[${index}].ports[${portIndex}].hostPort`,
          hostPort,
          "must match `containerPort` when `hostNetwork` is true",
        );
      }
    }
  }
}
