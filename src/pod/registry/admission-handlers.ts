import { table } from "../../ground/base/index.ts";
import {
  fullName,
  type IdentifiedPod,
  isSidecar,
  isStaticPod,
  type RejectionReason,
} from "../../ground/model/index.ts";
import type { AdmissionHandler, AdmissionVerdict } from "./admission.ts";

const admitted: AdmissionVerdict = { type: "admitted" };

function rejected(reason: RejectionReason, message: string): AdmissionVerdict {
  return { type: "rejected", reason, message };
}

/** Sysctls that can't harm other pods, with the kernel from which on they are kept apart by namespace. */
const safeSysctls: Readonly<Record<string, readonly [number, number]>> = table({
  "kernel.shm_rmid_forced": [0, 0],
  "net.ipv4.ip_local_port_range": [0, 0],
  "net.ipv4.tcp_syncookies": [0, 0],
  "net.ipv4.ping_group_range": [0, 0],
  "net.ipv4.ip_unprivileged_port_start": [0, 0],
  "net.ipv4.ip_local_reserved_ports": [3, 16],
  "net.ipv4.tcp_keepalive_time": [4, 5],
  "net.ipv4.tcp_keepalive_intvl": [4, 5],
  "net.ipv4.tcp_keepalive_probes": [4, 5],
  "net.ipv4.tcp_fin_timeout": [4, 6],
  "net.ipv4.tcp_rmem": [4, 15],
  "net.ipv4.tcp_wmem": [4, 15],
});

const ipcSysctls: ReadonlySet<string> = new Set(
  ["sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni", "msg"].map(
    (name) => `kernel.${name}`,
  ),
);

/** Refuses sysctls that are neither safe nor allowed by the node's administrator. */
export function sysctlHandler(settings: {
  readonly allowedUnsafe: readonly string[];
  readonly kernelVersion: string;
  readonly normalName: (name: string) => string;
}): AdmissionHandler {
  const [major = 0, minor = 0] = settings.kernelVersion.split(".").map((part) => Number.parseInt(part, 10));
  const isAllowed = (name: string): boolean => {
    const since = safeSysctls[name];
    if (since !== undefined && (major > since[0] || (major === since[0] && minor >= since[1]))) return true;
    return settings.allowedUnsafe.some((pattern) =>
      pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name,
    );
  };
  return (pod) => {
    for (const { name: written } of pod.spec.securityContext?.sysctls ?? []) {
      const name = settings.normalName(written);
      if (!isAllowed(name)) return rejected("SysctlForbidden", `forbidden sysctl: "${name}" not allowlisted`);
      const shared = sharedNamespace(pod, name);
      if (shared !== undefined) {
        return rejected("SysctlForbidden", `forbidden sysctl: "${name}" not allowed with host ${shared} enabled`);
      }
    }
    return admitted;
  };
}

function sharedNamespace(pod: IdentifiedPod, sysctl: string): "Net" | "IPC" | undefined {
  const isIpc = ipcSysctls.has(sysctl) || sysctl.startsWith("fs.mqueue.");
  if (isIpc && pod.spec.hostIPC === true) return "IPC";
  if (sysctl.startsWith("net.") && pod.spec.hostNetwork === true) return "Net";
  return undefined;
}

const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";

/** Refuses pods that want to be confined by AppArmor where the kernel has none. */
export function appArmorHandler(isEnabled: boolean): AdmissionHandler {
  return (pod) => {
    // A pod that already ran was admitted before.
    if (isEnabled || (pod.status?.phase !== undefined && pod.status.phase !== "Pending")) return admitted;
    const { initContainers = [], containers, securityContext } = pod.spec;
    const fields = [
      securityContext,
      ...[...initContainers, ...containers].map((container) => container.securityContext),
    ];
    const byField = fields.some(
      (context) => context?.appArmorProfile !== undefined && context.appArmorProfile.type !== "Unconfined",
    );
    const byAnnotation = Object.entries(pod.metadata.annotations ?? {}).some(
      ([key, value]) => key.startsWith(appArmorAnnotation) && value !== "unconfined" && value !== "",
    );
    if (!byField && !byAnnotation) return admitted;
    return rejected("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
  };
}

/**
 * Refuses pods while the node is being turned off. One that only this node can run waits instead: it comes back with
 * the node, and is not to be refused for good where the shutdown is called off.
 */
export function shutdownHandler(isShuttingDown: () => boolean): AdmissionHandler {
  return (pod) => {
    if (!isShuttingDown()) return admitted;
    if (isStaticPod(pod)) return { type: "undecided", waitsFor: "the node, which is shutting down" };
    return rejected("NodeShutdown", "Pod was rejected as the node is shutting down.");
  };
}

/** Refuses pods with resources as a whole where the node's administrator has switched that off. */
export function podLevelHandler(isEnabled: boolean): AdmissionHandler {
  return ({ spec: { resources } }) => {
    const isSet = Object.keys({ ...resources?.requests, ...resources?.limits }).length > 0;
    if (isEnabled || !isSet) return admitted;
    return rejected("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled");
  };
}

/** Refuses what is meant for another operating system. */
export const osHandler: AdmissionHandler = (pod) => {
  const os = pod.spec.os?.name;
  if (os !== undefined && os !== "linux") {
    return rejected("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS");
  }
  const label = pod.metadata.labels?.["kubernetes.io/os"];
  if (label !== undefined && label !== "linux") {
    return rejected(
      "PodOSSelectorNodeLabelDoesNotMatch",
      "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    );
  }
  return admitted;
};

/** Refuses a strict group policy that the runtime would silently not follow. */
export function groupsPolicyHandler(supportsStrict: () => boolean | undefined): AdmissionHandler {
  return (pod) => {
    if (pod.spec.securityContext?.supplementalGroupsPolicy !== "Strict") return admitted;
    const isSupported = supportsStrict();
    if (isSupported === undefined)
      return { type: "undecided", waitsFor: "the container runtime to say what it can do" };
    if (isSupported) return admitted;
    const message = "SupplementalGroupsPolicy=Strict is not supported in this node";
    return rejected("SupplementalGroupsPolicyNotSupported", message);
  };
}

/** Refuses pods whose host ports are taken by another pod that is wanted here. */
export const hostPortsHandler: AdmissionHandler = (pod, others) => {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return admitted;
  // By port: both sides may have tens of thousands.
  const taken = new Map<string, Set<string>>();
  for (const { port, protocol, ip } of others.filter((other) => !isSuccession(pod, other)).flatMap(hostPorts)) {
    const key = `${protocol} ${port}`;
    taken.set(key, (taken.get(key) ?? new Set()).add(ip));
  }
  const clash = wanted.some(({ port, protocol, ip }) => {
    const ips = taken.get(`${protocol} ${port}`);
    return ips !== undefined && (ip === "0.0.0.0" || ips.has(ip) || ips.has("0.0.0.0"));
  });
  if (!clash) return admitted;
  const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  return rejected("NodePorts", message);
};

/** The same pod, or two versions of a static one, of which the newer starts when the older has ended. */
function isSuccession(pod: IdentifiedPod, other: IdentifiedPod): boolean {
  if (pod.metadata.uid === other.metadata.uid) return true;
  return isStaticPod(pod) && isStaticPod(other) && fullName(pod) === fullName(other);
}

function hostPorts(
  pod: IdentifiedPod,
): readonly { readonly port: number; readonly protocol: string; readonly ip: string }[] {
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
