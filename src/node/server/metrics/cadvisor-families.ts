import type { MetricType } from "../../../ground/metrics/index.ts";
import type { CgroupRow } from "./cadvisor-rows.ts";

/** Values of a family for one cgroup, each with the labels it has besides those of the cgroup. */
type Values = readonly (readonly [labels: Readonly<Record<string, string>>, value: number | undefined])[];

export interface CgroupFamily {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly values: (row: CgroupRow) => number | undefined | Values;
}

const seconds = (nanoseconds: number | undefined): number | undefined =>
  nanoseconds === undefined ? undefined : nanoseconds / 1e9;

function gauge(name: string, help: string, values: CgroupFamily["values"]): CgroupFamily {
  return { name: `container_${name}`, type: "gauge", help, values };
}

function counter(name: string, help: string, values: CgroupFamily["values"]): CgroupFamily {
  return { name: `container_${name}_total`, type: "counter", help, values };
}

const cpu: readonly CgroupFamily[] = [
  counter("cpu_usage_seconds", "Processor time used", ({ sample }) => [
    [{ cpu: "total" }, seconds(sample.cpu?.usageNanoseconds)],
  ]),
  counter("cpu_user_seconds", "Processor time used by programs", ({ sample }) => seconds(sample.cpu?.userNanoseconds)),
  counter("cpu_system_seconds", "Processor time used by the kernel for them", ({ sample }) =>
    seconds(sample.cpu?.systemNanoseconds),
  ),
  counter("cpu_cfs_periods", "Periods over which the limit was watched", ({ details }) => details.throttling?.periods),
  counter(
    "cpu_cfs_throttled_periods",
    "Periods in which the limit took hold",
    ({ details }) => details.throttling?.throttledPeriods,
  ),
  counter("cpu_cfs_throttled_seconds", "Time for which the limit held it up", ({ details }) =>
    seconds(details.throttling?.throttledNanoseconds),
  ),
];

const memory: readonly CgroupFamily[] = [
  gauge("memory_usage_bytes", "Memory in use, all of it", ({ sample }) => sample.memory?.usageBytes),
  gauge(
    "memory_working_set_bytes",
    "Memory that can't be given back at once",
    ({ sample }) => sample.memory?.workingSetBytes,
  ),
  gauge("memory_rss", "Memory that belongs to no file", ({ sample }) => sample.memory?.rssBytes),
  gauge("memory_cache", "Memory that holds files", ({ sample }) => sample.memory?.cacheBytes),
  gauge("memory_mapped_file", "Memory that holds mapped files", ({ sample }) => sample.memory?.mappedFileBytes),
  gauge("memory_swap", "Swap in use", ({ sample }) => sample.memory?.swapBytes),
  gauge(
    "memory_total_active_file_bytes",
    "Files in memory that were used lately",
    ({ sample }) => sample.memory?.activeFileBytes,
  ),
  gauge(
    "memory_total_inactive_file_bytes",
    "Files in memory that were not used lately",
    ({ sample }) => sample.memory?.inactiveFileBytes,
  ),
  gauge("memory_max_usage_bytes", "Most memory that was ever in use", ({ details }) => details.memoryPeakBytes),
  gauge(
    "memory_kernel_usage",
    "Memory that the kernel uses for it",
    ({ sample, details }) => sample.memory?.kernelBytes ?? details.memoryKernelBytes,
  ),
  {
    name: "container_memory_failcnt",
    type: "counter",
    help: "How often memory hit its limit",
    values: ({ details }) => details.memoryFailures,
  },
  counter("memory_failures", "Page faults", memoryFailures),
  counter("oom_events", "Processes killed because memory ran out", ({ details }) => details.oomKills),
];

function memoryFailures({ sample, processes }: CgroupRow): Values {
  const hierarchy = { minor: sample.memory?.pageFaults, major: sample.memory?.majorPageFaults };
  // Where nothing is below, all of it is its own.
  const own = sample.memory?.ownPageFaults ?? (processes === undefined ? undefined : hierarchy);
  return (
    [
      ["container", own],
      ["hierarchy", hierarchy],
    ] as const
  ).flatMap(([scope, faults]) => [
    [{ failure_type: "pgfault", scope }, faults?.minor] as const,
    [{ failure_type: "pgmajfault", scope }, faults?.major] as const,
  ]);
}

const networks: readonly CgroupFamily[] = (
  [
    ["receive_bytes", "Bytes received", "rxBytes"],
    ["receive_packets", "Packets received", "rxPackets"],
    ["receive_packets_dropped", "Packets lost on their way in", "rxDropped"],
    ["receive_errors", "Errors of receiving", "rxErrors"],
    ["transmit_bytes", "Bytes sent", "txBytes"],
    ["transmit_packets", "Packets sent", "txPackets"],
    ["transmit_packets_dropped", "Packets lost on their way out", "txDropped"],
    ["transmit_errors", "Errors of sending", "txErrors"],
  ] as const
).map(([name, help, field]) =>
  counter(`network_${name}`, help, ({ network }) => network.map((each) => [{ interface: each.name }, each[field]])),
);

const processes: readonly CgroupFamily[] = [
  gauge("processes", "Processes", (row) => row.processes?.processes),
  gauge("file_descriptors", "Open files", (row) => row.processes?.openFiles),
  gauge("sockets", "Open sockets", (row) => row.processes?.sockets),
  gauge("ulimits_soft", "Limits of the first process", (row) =>
    row.processes === undefined ? [] : [[{ ulimit: "max_open_files" }, row.processes.openFileLimit]],
  ),
  gauge("threads", "Threads", (row) => (row.processes === undefined ? undefined : row.details.tasks)),
  gauge("threads_max", "Threads that there may be; 0: no limit", (row) =>
    row.processes === undefined || row.details.tasks === undefined ? undefined : (row.details.tasksLimit ?? 0),
  ),
];

const pressures: readonly CgroupFamily[] = (["cpu", "memory", "io"] as const).flatMap((what) => [
  counter(`pressure_${what}_waiting_seconds`, `Time in which some waited for ${what}`, ({ sample }) =>
    microseconds(sample.pressures?.[what]?.some.totalMicroseconds),
  ),
  counter(`pressure_${what}_stalled_seconds`, `Time in which all waited for ${what}`, ({ sample }) =>
    microseconds(sample.pressures?.[what]?.full.totalMicroseconds),
  ),
]);

function microseconds(value: number | undefined): number | undefined {
  return value === undefined ? undefined : value / 1e6;
}

/** Those that carry the time at which they were sampled. */
export const sampledFamilies: readonly CgroupFamily[] = [...cpu, ...memory, ...networks, ...processes, ...pressures];

/** What a cgroup is, rather than what it does. */
export const specFamilies: readonly CgroupFamily[] = [
  gauge("start_time_seconds", "When it was started, in seconds since 1970", ({ startedAt }) =>
    startedAt === undefined || startedAt <= 0 ? undefined : startedAt / 1000,
  ),
  gauge("last_seen", "When it was last looked at, in seconds since 1970", ({ sample }) => sample.at / 1000),
  gauge(
    "spec_cpu_period",
    "Microseconds over which its limit of the processor counts",
    ({ details }) => details.cpuPeriodMicroseconds,
  ),
  gauge(
    "spec_cpu_quota",
    "Microseconds of work that it may do in each of them",
    ({ details }) => details.cpuQuotaMicroseconds,
  ),
  gauge("spec_cpu_shares", "Its share of the processor beside others", ({ details }) => details.cpuShares),
  gauge("spec_memory_limit_bytes", "Memory that it may use; 0: no limit", ({ sample }) =>
    sample.memory === undefined || sample.path === "/" ? undefined : (sample.memory.limitBytes ?? 0),
  ),
  gauge("spec_memory_swap_limit_bytes", "Limit of swap as the kernel has it; 0: none", ({ sample, details }) =>
    sample.memory === undefined || sample.path === "/" ? undefined : (details.memorySwapLimitBytes ?? 0),
  ),
  gauge("spec_memory_reservation_limit_bytes", "Memory that is kept for it; 0: none", ({ sample, details }) =>
    sample.memory === undefined || sample.path === "/" ? undefined : (details.memoryReservationBytes ?? 0),
  ),
];
