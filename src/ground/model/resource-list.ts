import type { Quantity } from "./kube/gen/types.ts";
import { type Nano, parseQuantity, wholeUnits } from "./quantity.ts";

/** Amounts by resource name ("cpu", "memory", "hugepages-2Mi", ...). A missing name is not the same as zero. */
export type ResourceAmounts = ReadonlyMap<string, Nano>;

/** A pod that nobody has checked may have a long text in place of a list: that names no resource, and no million of them. */
export function amountsOf(list: Readonly<Record<string, Quantity>> | undefined): ResourceAmounts {
  if (typeof list !== "object") return new Map();
  return new Map(Object.entries(list ?? {}).map(([name, quantity]) => [name, parseQuantity(quantity)]));
}

export function addAmounts(a: ResourceAmounts, b: ResourceAmounts): ResourceAmounts {
  return merge(a, b, (x, y) => x + y);
}

/** The same, into a sum of many: a copy for each of thousands of containers would cost as many as they have names. */
export function addInto(sum: Map<string, Nano>, amounts: ResourceAmounts): void {
  for (const [name, amount] of amounts) sum.set(name, (sum.get(name) ?? 0n) + amount);
}

export function largerAmounts(a: ResourceAmounts, b: ResourceAmounts): ResourceAmounts {
  return merge(a, b, (x, y) => {
    if (x > y) return x;
    return y;
  });
}

function merge(a: ResourceAmounts, b: ResourceAmounts, combine: (x: Nano, y: Nano) => Nano): ResourceAmounts {
  const result = new Map(a);
  for (const [name, amount] of b) {
    const present = result.get(name);
    result.set(name, present === undefined ? amount : combine(present, amount));
  }
  return result;
}

const hugePagesPrefix = "hugepages-";

export function isHugePages(resource: string): boolean {
  return resource.startsWith(hugePagesPrefix);
}

/** The resource of pages of this size, which is written as a quantity: "hugepages-2Mi". */
export function hugePagesName(size: string): string {
  return `${hugePagesPrefix}${size}`;
}

/** The page size in a resource name such as "hugepages-2Mi", in bytes; undefined for any other resource. */
export function hugePageSizeOf(resource: string): bigint | undefined {
  if (!isHugePages(resource)) return undefined;
  return wholeUnits(parseQuantity(resource.slice(hugePagesPrefix.length)));
}

/** How cgroups and runtimes write a page size: "64KB", "2MB", "1GB". */
export function hugePageUnit(bytes: bigint): string {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1024n && size % 1024n === 0n && unit < units.length - 1) {
    size /= 1024n;
    unit++;
  }
  return `${size}${units[unit]}`;
}
