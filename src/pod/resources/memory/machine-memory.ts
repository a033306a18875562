import type { MachineTopology } from "../../../connections/host/index.ts";
import { formatQuantity, hugePagesName } from "../../../ground/model/index.ts";
import type { MemoryByNode, MemoryTable } from "./memory-state.ts";
import type { MemoryReserve } from "./reserved-memory.ts";

/** What every NUMA node has while nobody has anything. */
export function freshMemory({ nodes }: MachineTopology, reserve: MemoryReserve): MemoryByNode {
  return new Map(
    nodes.map(({ id, memoryBytes, hugePages }) => {
      const reservedOf = (type: string): number => reserve.get(id)?.get(type) ?? 0;
      const pages = [...hugePages].map(([size, bytes]) => {
        const type = hugePagesName(formatQuantity(size * 1_000_000_000n, "binary"));
        return [type, tableOf(bytes, reservedOf(type), bytes - reservedOf(type))] as const;
      });
      const inPages = [...hugePages.values()].reduce((sum, bytes) => sum + bytes, 0);
      const memory = tableOf(memoryBytes, reservedOf("memory"), memoryBytes - reservedOf("memory") - inPages);
      const tables = new Map<string, MemoryTable>([...pages, ["memory", memory]]);
      return [id, { assignments: 0, group: [id], tables }] as const;
    }),
  );
}

function tableOf(total: number, systemReserved: number, allocatable: number): MemoryTable {
  const free = Math.max(0, allocatable);
  return { total, systemReserved, allocatable: free, reserved: 0, free };
}
