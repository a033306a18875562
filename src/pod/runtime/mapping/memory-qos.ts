import { amountsOf, type Container, type Nano, wholeUnits } from "../../../ground/model/index.ts";
import type { ResourceSettings } from "./context.ts";

/** The cgroup v2 files by which a container's memory request is kept for it, and its growth is slowed before its limit. */
export function memoryQosKeys(container: Container, settings: ResourceSettings): Readonly<Record<string, string>> {
  const { memoryQos, cgroupVersion } = settings;
  if (memoryQos === undefined || cgroupVersion !== 2) return {};
  const bytes = (amount: Nano | undefined): number => Number(wholeUnits(amount ?? 0n));
  const request = bytes(amountsOf(container.resources?.requests).get("memory"));
  const limit = bytes(amountsOf(container.resources?.limits).get("memory"));
  const keys: Record<string, string> = {};
  if (request !== 0) keys["memory.min"] = String(request);
  const ceiling = limit === 0 ? Number(memoryQos.podsMemoryBytes) : limit;
  if (request !== limit && ceiling > 0) {
    const { throttlingFactor, pageSizeBytes } = memoryQos;
    const high = Math.floor((request + (ceiling - request) * throttlingFactor) / pageSizeBytes) * pageSizeBytes;
    if (high > request) keys["memory.high"] = String(high);
  }
  return keys;
}
