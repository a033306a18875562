import { table } from "../../ground/base/index.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import { type AdmissionHandler, admitted, rejected } from "./admission.ts";

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
