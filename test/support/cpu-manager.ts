import type { MachineTopology } from "../../src/connections/host/index.ts";
import { CpuSet } from "../../src/ground/base/index.ts";
import type { IdentifiedPod, PodUid } from "../../src/ground/model/index.ts";
import type { CpuOptions } from "../../src/pod/resources/cpu/cpu-settings.ts";
import { CpuTopology } from "../../src/pod/resources/cpu/cpu-topology.ts";
import { ExclusiveCpus } from "../../src/pod/resources/cpu/exclusive-cpus.ts";
import { Alignment, type AlignmentSettings } from "../../src/pod/resources/topology/alignment.ts";
import { NumaNodes } from "../../src/pod/resources/topology/numa-nodes.ts";

export const noCpuOptions: CpuOptions = {
  wholeCoresOnly: false,
  acrossNodes: false,
  bySocket: false,
  acrossCores: false,
  strictReservation: false,
  byCache: false,
};

/** CPUs of a machine with nothing given yet, and what the alignment does with them alone. */
export function cpuManager(
  machine: MachineTopology,
  reserved: string,
  options: Partial<CpuOptions> = {},
  aligned: Partial<AlignmentSettings> = {},
) {
  const topology = new CpuTopology(machine);
  const numa = new NumaNodes(machine.nodes.map(({ id }) => id));
  const settings = { options: { ...noCpuOptions, ...options }, reserved: CpuSet.parse(reserved) };
  const shared = options.strictReservation === true ? topology.cpus.without(settings.reserved) : topology.cpus;
  const counted = { requests: 0, failures: 0, aligned: [] as string[] };
  const cpus = new ExclusiveCpus(
    settings,
    { shared, exclusive: new Map() },
    {
      topology,
      numa,
      onChange: () => undefined,
      metrics: {
        onRequest: () => counted.requests++,
        onFailure: () => counted.failures++,
        onAligned: (boundary, isAligned) => counted.aligned.push(`${boundary} ${isAligned}`),
      },
    },
  );
  const alignment = new Alignment({ policy: "none", scope: "container", prefersClosest: false, ...aligned }, numa, {
    providers: [cpus],
    distances: machine.nodes.map(({ distances }) => distances ?? []),
  });
  return {
    cpus,
    topology,
    numa,
    settings,
    counted,
    /** What each container of the pod has then; sharing is "". */
    give(pod: IdentifiedPod): Readonly<Record<string, string>> {
      alignment.give(pod);
      const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
      return Object.fromEntries(
        containers.map(({ name }) => [name, cpus.of(pod.metadata.uid as PodUid, name)?.toString() ?? ""]),
      );
    },
  };
}
