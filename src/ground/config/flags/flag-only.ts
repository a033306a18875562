import {
  boolKind,
  durationKind,
  type FlagKind,
  int32Kind,
  int64Kind,
  labelsKind,
  stringKind,
  versionKind,
} from "./flag-kinds.ts";

export interface FlagSpec<Value> {
  readonly kind: FlagKind<Value>;
  readonly default: Value;
  readonly help: string;
  readonly shorthand?: string;
  /** The rest of "Flag --x has been deprecated, …". */
  readonly deprecated?: string;
}

const useEviction = "Use --eviction-hard or --eviction-soft instead. Will be removed in a future version.";

const fromCadvisor =
  "This is a cadvisor flag that was mistakenly registered with the Kubelet. Due to legacy concerns, it will follow " +
  "the standard CLI deprecation timeline before being removed.";

/** Flags without a field in the configuration file. */
export const flagOnly = {
  config: text("", "Configuration file; a relative path starts at the working directory."),
  "config-dir": text("", "Directory of drop-ins, *.conf, applied over the configuration file in lexical order."),
  "dynamic-config-dir": text(
    "",
    "Take over changes of the configuration while running, and keep in this directory what was tried and what works.",
  ),
  "dynamic-config-map": text(
    "",
    "Config map to take the configuration from, namespace/name or namespace/name/key; needs --dynamic-config-dir.",
  ),
  "dynamic-config-trial": flag(
    durationKind,
    600_000,
    "How long a new configuration is tried before it counts as good.",
  ),
  kubeconfig: text("", "How to reach the API server; empty means to run without one."),
  "bootstrap-kubeconfig": text("", "Credentials to ask for the first client certificate with."),
  "hostname-override": text("", "Name of the node instead of the hostname."),
  "node-ip": text("", "IP address of the node, or one of each family; 0.0.0.0 or :: for the family's default."),
  "cert-dir": text("/var/lib/kubelet/pki", "Directory of certificates and keys."),
  "cloud-provider": text("", "Empty, or external for a cloud controller outside."),
  "cloud-instance": text(
    "",
    "Program or http(s) address that says what the cloud knows of this machine; not with --cloud-provider.",
  ),
  "root-dir": text("/var/lib/kubelet", "Directory of pods' volumes and of the agent's state."),
  "seccomp-default": flag(boolKind, false, "Use the runtime's seccomp profile where a pod names none."),
  "node-labels": flag(labelsKind, {}, "Labels of a newly registered node, key=value,..."),
  "dashboard-address": text("", "Where people of this machine see the dashboard, HOST:PORT; empty for nowhere."),
  "lock-file": text("", "File to lock, so that one agent runs at a time."),
  "exit-on-lock-contention": flag(boolKind, false, "Exit when another process opens the lock file."),
  "runtime-cgroups": text("", "Cgroup of the container runtime, for its statistics."),
  "image-credential-provider-config": text("", "Configuration of credential plugins, a file or a directory."),
  "image-credential-provider-bin-dir": text("", "Directory of the credential plugins."),
  "pod-infra-container-image": text(
    "",
    "Accepted; the runtime names the sandbox image.",
    "will be removed in 1.35. Image garbage collector will get sandbox image information from CRI.",
  ),
  "minimum-container-ttl-duration": flag(durationKind, 0, "Age at which a dead container may be deleted.", useEviction),
  "maximum-dead-containers-per-container": flag(int32Kind, 1, "Dead instances kept of each container.", useEviction),
  "maximum-dead-containers": flag(int32Kind, -1, "Dead containers kept in all; negative is no limit.", useEviction),
  "experimental-mounter-path": text(
    "",
    "Program that mounts instead of the agent.",
    "will be removed in 1.25 or later. in favor of using CSI.",
  ),
  "experimental-allocatable-ignore-eviction": flag(
    boolKind,
    false,
    "Do not subtract hard eviction thresholds from what pods may use.",
    "will be removed in 1.25 or later.",
  ),
  "housekeeping-interval": flag(durationKind, 10_000, "Time between two measurements of a container."),
  version: flag(versionKind, "false", "Print the version and exit; =raw for all of it, =vX.Y.Z... to report another."),
  help: { ...flag(boolKind, false, "Print this text."), shorthand: "h" },
  "application-metrics-count-limit": flag(int64Kind, 100, "Accepted; has no effect.", fromCadvisor),
  "boot-id-file": cadvisor("/proc/sys/kernel/random/boot_id"),
  "container-hints": cadvisor("/etc/cadvisor/container_hints.json"),
  containerd: cadvisor("/run/containerd/containerd.sock"),
  "containerd-namespace": cadvisor("k8s.io"),
  "enable-load-reader": flag(boolKind, false, "Accepted; has no effect.", fromCadvisor),
  "event-storage-age-limit": cadvisor("default=0"),
  "event-storage-event-limit": cadvisor("default=0"),
  "global-housekeeping-interval": flag(durationKind, 60_000, "Accepted; has no effect.", fromCadvisor),
  "log-cadvisor-usage": flag(boolKind, false, "Accepted; has no effect.", fromCadvisor),
  "machine-id-file": cadvisor("/etc/machine-id,/var/lib/dbus/machine-id"),
  "storage-driver-user": cadvisor("root"),
  "storage-driver-password": cadvisor("root"),
  "storage-driver-host": cadvisor("localhost:8086"),
  "storage-driver-db": cadvisor("cadvisor"),
  "storage-driver-table": cadvisor("stats"),
  "storage-driver-secure": flag(boolKind, false, "Accepted; has no effect.", fromCadvisor),
  "storage-driver-buffer-duration": flag(durationKind, 60_000, "Accepted; has no effect.", fromCadvisor),
} as const;

export type FlagOnlyName = keyof typeof flagOnly;

export type FlagOnlyValue<Name extends FlagOnlyName> =
  (typeof flagOnly)[Name] extends FlagSpec<infer Value> ? Value : never;

function flag<Value>(kind: FlagKind<Value>, fallback: Value, help: string, deprecated?: string): FlagSpec<Value> {
  return { kind, default: fallback, help, ...(deprecated === undefined ? {} : { deprecated }) };
}

function text(fallback: string, help: string, deprecated?: string): FlagSpec<string> {
  return flag(stringKind, fallback, help, deprecated);
}

function cadvisor(fallback: string): FlagSpec<string> {
  return flag(stringKind, fallback, "Accepted; has no effect.", fromCadvisor);
}
