import type { HealMode } from "./cgroup-driver.ts";
import { atMostBytes, mostBytes } from "./cgroup-values.ts";
import type { CgroupWrite } from "./cgroup-writes.ts";

/** Whether a control file that reads `found` still says what was written to it, or enough of it. */
export function isKept({ text, pageBytes }: CgroupWrite, found: string, mode: HealMode): boolean {
  if (found === text) return true;
  const [wantedPart, presentPart] = [quotaOf(text), quotaOf(found)];
  if (wantedPart !== undefined && presentPart !== undefined) {
    return wantedPart.period === presentPart.period && mode === "raise" && presentPart.quota >= wantedPart.quota;
  }
  const [wanted, present] = [numberOf(text), numberOf(found)];
  if (wanted === undefined || present === undefined) return false;
  if (wanted === present) return true;
  if (mode === "raise" && present >= wanted) return true;
  // A limit is kept in whole pages, the next lower one.
  return pageBytes !== undefined && present <= wanted && wanted - present < pageBytes;
}

/** The two numbers of cpu.max. */
function quotaOf(text: string): { readonly quota: bigint; readonly period: bigint } | undefined {
  const [, quota, period] = /^(max|\d+) (\d+)$/.exec(text) ?? [];
  if (quota === undefined || period === undefined) return undefined;
  return { quota: quota === "max" ? mostBytes : BigInt(quota), period: BigInt(period) };
}

function numberOf(text: string): bigint | undefined {
  if (text === "max" || text === "-1") return mostBytes;
  return /^\d+$/.test(text) ? atMostBytes(BigInt(text)) : undefined;
}
