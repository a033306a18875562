import type { Container } from "../../../src/ground/model/index.ts";

/** Milli-CPUs and mebibytes. */
export interface Amounts {
  readonly cpu: number;
  readonly memory: number;
}

export interface Wish {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

/** A change of resources, and what kind of change it is. */
export interface Step {
  readonly what: string;
  readonly wish: Wish;
}

export const same = (cpu: number, memory: number): Wish => ({ requests: { cpu, memory }, limits: { cpu, memory } });

export function asResources({ requests, limits }: Wish): NonNullable<Container["resources"]> {
  const quantities = ({ cpu, memory }: Amounts) => ({ cpu: `${cpu}m`, memory: `${memory}Mi` });
  return { requests: quantities(requests), limits: quantities(limits) };
}

export function sumOf(wishes: readonly Wish[]): Wish {
  const add = (list: "requests" | "limits"): Amounts => ({
    cpu: wishes.reduce((total, wish) => total + wish[list].cpu, 0),
    memory: wishes.reduce((total, wish) => total + wish[list].memory, 0),
  });
  return { requests: add("requests"), limits: add("limits") };
}

type Resource = keyof Amounts;
type List = keyof Wish;
type Direction = "increase" | "decrease";

interface Change {
  readonly resource: Resource;
  readonly list: List;
  readonly direction: Direction;
}

const resourceSets: readonly (readonly Resource[])[] = [["cpu"], ["memory"], ["cpu", "memory"]];
const listSets: readonly (readonly List[])[] = [["requests"], ["limits"], ["requests", "limits"]];
const opposite = (direction: Direction): Direction => (direction === "increase" ? "decrease" : "increase");

/** {increase, decrease, mixed} x {cpu, memory, both} x {requests, limits, both}: 30 changes. */
const burstableChanges: readonly (readonly Change[])[] = [
  ...resourceSets.flatMap((names) =>
    listSets.flatMap((lists) =>
      (["increase", "decrease"] as const).map((direction) =>
        names.flatMap((resource) => lists.map((list) => ({ resource, list, direction }))),
      ),
    ),
  ),
  // Mixed: requests one way and limits the other, or CPUs one way and memory the other.
  ...resourceSets.flatMap((names) =>
    (["increase", "decrease"] as const).map((direction) =>
      names.flatMap((resource): readonly Change[] => [
        { resource, list: "requests", direction },
        { resource, list: "limits", direction: opposite(direction) },
      ]),
    ),
  ),
  ...listSets.flatMap((lists) =>
    (["increase", "decrease"] as const).map((direction) =>
      lists.flatMap((list): readonly Change[] => [
        { resource: "cpu", list, direction },
        { resource: "memory", list, direction: opposite(direction) },
      ]),
    ),
  ),
];

/** Requests are limits: 8 changes. */
const guaranteedChanges: readonly (readonly Change[])[] = [
  ...resourceSets.flatMap((names) =>
    (["increase", "decrease"] as const).map((direction) => names.flatMap((name) => bothLists(name, direction))),
  ),
  ...(["increase", "decrease"] as const).map((direction) => [
    ...bothLists("cpu", direction),
    ...bothLists("memory", opposite(direction)),
  ]),
];

function bothLists(resource: Resource, direction: Direction): readonly Change[] {
  return (["requests", "limits"] as const).map((list) => ({ resource, list, direction }));
}

export const burstableBase: Wish = { requests: { cpu: 100, memory: 40 }, limits: { cpu: 400, memory: 120 } };
export const guaranteedBase: Wish = same(120, 80);

export const burstableSteps: readonly Step[] = stepsOf(burstableBase, burstableChanges);
export const guaranteedSteps: readonly Step[] = stepsOf(guaranteedBase, guaranteedChanges);

/**
 * One after the other, each from what the one before left. None comes twice: a container that restarts with what it
 * once had would be in its back-off.
 */
function stepsOf(base: Wish, changes: readonly (readonly Change[])[]): readonly Step[] {
  const seen = new Set([JSON.stringify(base)]);
  let now = base;
  return changes.map((change) => {
    now = newWish(now, change, seen);
    const what = change.map(({ resource, list, direction }) => `${direction} ${list}.${resource}`).join(", ");
    return { what, wish: now };
  });
}

function newWish(before: Wish, change: readonly Change[], seen: Set<string>): Wish {
  for (let more = 0; ; more++) {
    const wish = { requests: { ...before.requests }, limits: { ...before.limits } };
    for (const { resource, list, direction } of change) {
      const by = (resource === "cpu" ? 30 : 12) + more;
      wish[list][resource] += direction === "increase" ? by : -by;
    }
    if (seen.has(JSON.stringify(wish))) continue;
    seen.add(JSON.stringify(wish));
    return wish;
  }
}
