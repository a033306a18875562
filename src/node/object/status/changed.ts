import {
  jsonEqual,
  type Node,
  type NodeCondition,
  type ResourceList,
  tryParseQuantity,
} from "../../../ground/model/index.ts";

/** True when a status says something else than before; that it was computed anew does not count. */
export function statusChanged(old: Node["status"], next: Node["status"]): boolean {
  const { conditions: oldConditions, capacity: oldCapacity, allocatable: oldAllocatable, ...oldRest } = old ?? {};
  const { conditions, capacity, allocatable, ...rest } = next ?? {};
  return (
    !sameAmounts(oldCapacity, capacity) ||
    !sameAmounts(oldAllocatable, allocatable) ||
    !jsonEqual(comparable(oldConditions), comparable(conditions)) ||
    !jsonEqual(withoutEmpty(oldRest), withoutEmpty(rest))
  );
}

function comparable(conditions: readonly NodeCondition[] = []): readonly unknown[] {
  return conditions
    .map(({ lastHeartbeatTime: _, ...condition }) => condition)
    .sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0));
}

/** "1Gi" and "1024Mi" are the same. */
function sameAmounts(a: ResourceList = {}, b: ResourceList = {}): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const [left, right] = [a[name], b[name]];
    if (left === undefined || right === undefined) return false;
    return left === right || tryParseQuantity(left) === tryParseQuantity(right);
  });
}

/** An empty list and none at all mean the same. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value)
    .map(([key, item]) => [key, withoutEmpty(item)] as const)
    .filter(([, item]) => !(typeof item === "object" && item !== null && Object.keys(item).length === 0));
  return Object.fromEntries(kept);
}
