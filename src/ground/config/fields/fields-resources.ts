import { reservedMemoryKind, wholeMapKind } from "../flags/flag-kinds.ts";
import { boolField, floatField, memoryReservationsField } from "./field-kinds.ts";
import {
  between,
  bool,
  duration,
  field,
  int32,
  int64,
  notNegative,
  oneOf,
  stringMap,
  strings,
  text,
  unset,
} from "./field-spec.ts";

/** Cgroups, reservations, CPU, memory and topology managers, limits of the agent itself. */
export const resourceFields = {
  oomScoreAdj: int32(-999, "The agent's own OOM score.", {
    flag: "oom-score-adj",
    pointer: true,
    check: between(-1000, 1000),
  }),
  maxOpenFiles: int64(1_000_000, "Files the agent may have open.", { flag: "max-open-files", check: notNegative }),
  maxPods: int32(110, "Pods this node runs at most.", { flag: "max-pods", check: notNegative }),
  podsPerCore: int32(0, "Pods for each core, never more than maxPods; 0 is no limit.", {
    flag: "pods-per-core",
    check: notNegative,
  }),
  podPidsLimit: int64(-1, "Processes in each pod; -1 for what the node allows.", {
    flag: "pod-max-pids",
    pointer: true,
  }),
  kubeletCgroups: text("", "Cgroup of the agent itself.", { flag: "kubelet-cgroups" }),
  systemCgroups: text("", "Cgroup for processes that are in none.", { flag: "system-cgroups" }),
  cgroupRoot: text("", "Parent cgroup of all pods; empty means /.", { flag: "cgroup-root" }),
  cgroupsPerQOS: bool(true, "Group pods in cgroups by quality of service.", { flag: "cgroups-per-qos", pointer: true }),
  cgroupDriver: text("cgroupfs", "cgroupfs or systemd; the runtime's answer comes first.", { flag: "cgroup-driver" }),
  failCgroupV1: bool(false, "Refuse to start on cgroup v1.", {
    flag: "fail-cgroupv1",
    flagStays: true,
    pointer: true,
  }),
  singleProcessOOMKill: unset(boolField, "Let the OOM killer take one process instead of the container."),
  cpuCFSQuota: bool(true, "Enforce CPU limits.", { flag: "cpu-cfs-quota", pointer: true }),
  cpuCFSQuotaPeriod: duration(100, "Period of the CPU quota; needs the gate CustomCPUCFSQuotaPeriod.", {
    flag: "cpu-cfs-quota-period",
    pointer: true,
  }),
  cpuManagerPolicy: text("none", "none, or static for exclusive CPUs.", {
    flag: "cpu-manager-policy",
    check: oneOf(["none", "static"]),
  }),
  cpuManagerPolicyOptions: stringMap({}, "Fine-tuning of the CPU manager, one key=value for each use.", {
    flag: "cpu-manager-policy-options",
    flagKind: wholeMapKind,
  }),
  cpuManagerReconcilePeriod: duration(10_000, "Time between two checks of the containers' CPUs.", {
    flag: "cpu-manager-reconcile-period",
  }),
  memoryManagerPolicy: text("None", "None, or Static for memory of one NUMA node.", {
    flag: "memory-manager-policy",
    check: oneOf(["None", "Static"]),
  }),
  reservedMemory: field(memoryReservationsField, reservedMemoryKind, [], "Reserved memory, numa:type=quantity,...", {
    flag: "reserved-memory",
  }),
  topologyManagerPolicy: text("none", "none, best-effort, restricted or single-numa-node.", {
    flag: "topology-manager-policy",
    check: oneOf(["none", "best-effort", "restricted", "single-numa-node"]),
  }),
  topologyManagerScope: text("container", "Align each container, or the whole pod.", {
    flag: "topology-manager-scope",
    check: oneOf(["container", "pod"]),
  }),
  topologyManagerPolicyOptions: stringMap({}, "Fine-tuning of the topology manager, key=value,...", {
    flag: "topology-manager-policy-options",
  }),
  qosReserved: stringMap({}, "Share of memory kept for requests, memory=50%; needs the gate QOSReserved.", {
    flag: "qos-reserved",
  }),
  systemReserved: stringMap({}, "Resources kept for the system, cpu=200m,memory=500Mi,...", {
    flag: "system-reserved",
  }),
  kubeReserved: stringMap({}, "Resources kept for Kubernetes daemons, cpu=200m,memory=500Mi,...", {
    flag: "kube-reserved",
  }),
  reservedSystemCPUs: text("", "CPUs kept for the system, 0-1,4; replaces the cpu amounts reserved.", {
    flag: "reserved-cpus",
  }),
  systemReservedCgroup: text("", "Cgroup limited to systemReserved.", { flag: "system-reserved-cgroup" }),
  kubeReservedCgroup: text("", "Cgroup limited to kubeReserved.", { flag: "kube-reserved-cgroup" }),
  enforceNodeAllocatable: strings(["pods"], "Which limits of the node are enforced.", {
    flag: "enforce-node-allocatable",
  }),
  protectKernelDefaults: bool(false, "Fail instead of changing kernel settings.", { flag: "protect-kernel-defaults" }),
  failSwapOn: bool(true, "Refuse to start with swap on.", { flag: "fail-swap-on", pointer: true }),
  "memorySwap.swapBehavior": text("", "Swap for pods: NoSwap or LimitedSwap; empty means NoSwap."),
  memoryThrottlingFactor: field(floatField, undefined, 0.9, "Share of the memory limit at which throttling starts.", {
    pointer: true,
    check: { rule: "must be greater than 0 and less than or equal to 1.0", ok: (value) => value > 0 && value <= 1 },
  }),
  allowedUnsafeSysctls: strings([], "Unsafe sysctls, or patterns ending in *, that pods may set.", {
    flag: "allowed-unsafe-sysctls",
  }),
  makeIPTablesUtilChains: bool(true, "Keep the iptables hint chains present.", {
    flag: "make-iptables-util-chains",
    pointer: true,
  }),
  iptablesMasqueradeBit: int32(14, "Accepted; has no effect any more.", { pointer: true, check: between(0, 31) }),
  iptablesDropBit: int32(15, "Accepted; has no effect any more.", { pointer: true, check: between(0, 31) }),
  runOnce: bool(false, "Gone; only false is accepted.", { flag: "runonce" }),
} as const;
