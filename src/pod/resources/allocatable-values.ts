import { milliUnits, type ResourceAmounts, sharesOfMilliCpu, wholeUnits } from "../../ground/model/index.ts";
import { atMostBytes, type CgroupValues } from "./cgroup-values.ts";
import { hugePageValues } from "./pod-cgroup-limits.ts";

export interface NodeShare {
  /** cpu, memory, hugepages-* and pid of the machine. */
  readonly capacity: ResourceAmounts;
  readonly systemReserved: ResourceAmounts;
  readonly kubeReserved: ResourceAmounts;
  readonly hugePageSizes: readonly bigint[];
  /** The MemoryQoS gate. */
  readonly memoryQos: boolean;
}

/** What all pods together may use. Reserves are withheld only where the node enforces its allocatable share. */
export function kubepodsValues(node: NodeShare, enforcesPods: boolean): CgroupValues {
  const available = new Map(
    [...node.capacity].map(([name, amount]) => {
      const reserved = (node.systemReserved.get(name) ?? 0n) + (node.kubeReserved.get(name) ?? 0n);
      if (!enforcesPods) return [name, amount];
      return [name, amount > reserved ? amount - reserved : 0n];
    }),
  );
  return amountValues(available, node.hugePageSizes);
}

/** What a reserved cgroup may use: all of its reserve, or only its share of the CPUs. */
export function reservedValues(
  reserved: ResourceAmounts,
  { hugePageSizes, memoryQos }: Pick<NodeShare, "hugePageSizes" | "memoryQos">,
  kind: "full" | "compressible",
): CgroupValues {
  const { cpuShares, ...rest } = amountValues(reserved, hugePageSizes);
  const shares = cpuShares === undefined ? {} : { cpuShares };
  if (kind === "compressible") return shares;
  const { memoryLimitBytes } = rest;
  const kept = memoryQos && memoryLimitBytes !== undefined ? { memoryMinBytes: memoryLimitBytes } : {};
  return { ...shares, ...rest, ...kept };
}

/** What pods may use of the machine's memory, whether that is enforced or not. */
export function memoryForPods(node: NodeShare): bigint {
  return kubepodsValues(node, true).memoryLimitBytes ?? 0n;
}

function amountValues(amounts: ResourceAmounts, hugePageSizes: readonly bigint[]): CgroupValues {
  const cpu = amounts.get("cpu");
  const memory = wholeUnits(amounts.get("memory") ?? 0n);
  const pids = Number(wholeUnits(amounts.get("pid") ?? 0n));
  return {
    ...(cpu === undefined ? {} : { cpuShares: sharesOfMilliCpu(Number(milliUnits(cpu))) }),
    // Zero is "not set": taken at its word it would kill everything.
    ...(memory === 0n ? {} : { memoryLimitBytes: atMostBytes(memory) }),
    ...(pids === 0 ? {} : { pidsLimit: pids }),
    ...hugePageValues(amounts, hugePageSizes),
  };
}
