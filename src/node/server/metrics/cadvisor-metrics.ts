import { labelText, type MetricText, withLabel } from "../../../ground/metrics/index.ts";
import type { NodeStatistics } from "../stats/node-stats.ts";
import { diskFamilies } from "./cadvisor-disks.ts";
import { type CgroupFamily, sampledFamilies, specFamilies } from "./cadvisor-families.ts";
import type { CgroupRow } from "./cadvisor-rows.ts";

/** /metrics/cadvisor: everything about every cgroup, under the names that dashboards know. */
export async function writeCadvisorMetrics(
  text: MetricText,
  statistics: NodeStatistics,
  rows: readonly CgroupRow[],
): Promise<void> {
  writeVersions(text, statistics);
  for (const family of specFamilies) writeFamily(text, family, rows, () => undefined);
  await text.drain();
  for (const family of [...sampledFamilies, ...diskFamilies(statistics.ports.settings.hostRoot)]) {
    writeFamily(text, family, rows, ({ sample }) => sample.at);
    await text.drain();
  }
  writeMachine(text, statistics);
  writeScrapeErrors(text, 0);
}

function writeFamily(
  text: MetricText,
  { name, type, help, values }: CgroupFamily,
  rows: readonly CgroupRow[],
  timeOf: (row: CgroupRow) => number | undefined,
): void {
  let isFirst = true;
  const sample = (labels: string, value: number, at: number | undefined): void => {
    if (isFirst) text.family(name, type, help);
    isFirst = false;
    text.sample(name, labels, value, at);
  };
  for (const row of rows) {
    const found = values(row);
    if (found === undefined) continue;
    if (typeof found === "number") {
      sample(row.labels, found, timeOf(row));
      continue;
    }
    for (const [more, value] of found) {
      if (value === undefined) continue;
      let { labels } = row;
      for (const [label, content] of Object.entries(more)) labels = withLabel(labels, label, content);
      sample(labels, value, timeOf(row));
    }
  }
}

function writeVersions(text: MetricText, { ports }: NodeStatistics): void {
  const { kernelVersion, osImage } = ports.machine;
  const name = "cadvisor_version_info";
  text.family(name, "gauge", "1 for the versions that the figures come from");
  const versions = { cadvisorRevision: "", cadvisorVersion: "", dockerVersion: "", kernelVersion, osVersion: osImage };
  text.sample(name, labelText(versions), 1);
}

function writeMachine(text: MetricText, { ports }: NodeStatistics): void {
  const { bootId, machineId, systemUuid, cpus, memoryBytes, swapBytes } = ports.machine;
  const labels = labelText({ boot_id: bootId, machine_id: machineId, system_uuid: systemUuid });
  for (const [what, help, value] of [
    ["cpu_cores", "Processors", cpus.logical],
    ["cpu_physical_cores", "Cores", cpus.physicalCores],
    ["cpu_sockets", "Sockets", cpus.sockets],
    ["memory_bytes", "Memory", memoryBytes],
    ["swap_bytes", "Swap", swapBytes],
  ] as const) {
    const name = `machine_${what}`;
    text.family(name, "gauge", `${help} of the machine`);
    text.sample(name, labels, value);
  }
}

export function writeScrapeErrors(text: MetricText, errors: 0 | 1): void {
  for (const name of ["container_scrape_error", "machine_scrape_error"]) {
    text.family(name, "gauge", "1 when the figures could not be taken, else 0");
    text.sample(name, "", errors);
  }
}
