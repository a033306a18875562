import { fullName, type IdentifiedPod, isSidecar, isStaticPod } from "../../ground/model/index.ts";
import { type AdmissionHandler, admitted, rejected } from "./admission.ts";

/** Refuses pods whose host ports are taken by another pod that is wanted here. */
export const hostPortsHandler: AdmissionHandler = (pod, others) => {
  if (clashingHostPorts(pod, others).length === 0) return admitted;
  const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  return rejected("NodePorts", message);
};

/** A port of the host that two pods want. */
export interface HostPortClash extends HostPort {
  readonly holder: IdentifiedPod;
}

/** The host ports that the pod can't have, with one that has each. */
export function clashingHostPorts(pod: IdentifiedPod, others: readonly IdentifiedPod[]): readonly HostPortClash[] {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return [];
  // By port: both sides may have tens of thousands.
  const taken = new Map<string, Map<string, IdentifiedPod>>();
  for (const other of others.filter((each) => !isSuccession(pod, each))) {
    for (const { port, protocol, ip } of hostPorts(other)) {
      const key = `${protocol} ${port}`;
      taken.set(key, (taken.get(key) ?? new Map()).set(ip, other));
    }
  }
  return wanted.flatMap((port) => {
    const holders = taken.get(`${port.protocol} ${port.port}`);
    const [anyHolder] = port.ip === "0.0.0.0" ? (holders?.values() ?? []) : [];
    const holder = anyHolder ?? holders?.get(port.ip) ?? holders?.get("0.0.0.0");
    return holder === undefined ? [] : [{ ...port, holder }];
  });
}

/** The same pod, or two versions of a static one, of which the newer starts when the older has ended. */
function isSuccession(pod: IdentifiedPod, other: IdentifiedPod): boolean {
  if (pod.metadata.uid === other.metadata.uid) return true;
  return isStaticPod(pod) && isStaticPod(other) && fullName(pod) === fullName(other);
}

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  /** 0.0.0.0: all of the host. */
  readonly ip: string;
}

function hostPorts(pod: IdentifiedPod): readonly HostPort[] {
  const sidecars = (pod.spec.initContainers ?? []).filter(isSidecar);
  return [...sidecars, ...pod.spec.containers].flatMap(({ ports = [] }) =>
    ports
      .filter(({ hostPort }) => hostPort !== undefined && hostPort > 0)
      .map(({ hostPort = 0, protocol = "TCP", hostIP }) => ({
        port: hostPort,
        protocol,
        ip: hostIP === undefined || hostIP === "" ? "0.0.0.0" : hostIP,
      })),
  );
}
