import { apiTime, type Node, type Taint } from "../../../ground/model/index.ts";
import { objectAt } from "../json.ts";
import { nodes } from "../kinds/index.ts";
import { type ApiObject, keyOfObject } from "../object.ts";
import type { World } from "../rest/world.ts";

const keyOfCondition: ReadonlyMap<string, string> = new Map([
  ["MemoryPressure", "node.kubernetes.io/memory-pressure"],
  ["DiskPressure", "node.kubernetes.io/disk-pressure"],
  ["PIDPressure", "node.kubernetes.io/pid-pressure"],
]);

/**
 * Keeps new pods off a node that runs short, by the taints that the node controller of a cluster would set. Else the
 * binder would place pods there that the node has to refuse, and pods that were refused never come back.
 */
export function runPressureTaints(world: World): () => void {
  for (const node of world.store.list(nodes.storage)) taint(world, node);
  return world.store.subscribe(nodes.storage, ({ type, object }) => {
    if (type !== "DELETED") taint(world, object);
  });
}

function taint(world: World, seen: ApiObject): void {
  const object = world.store.get(nodes.storage, keyOfObject(seen));
  if (object === undefined) return;
  const node = object as unknown as Node;
  const before = node.spec?.taints ?? [];
  const after = taintsFor(node, apiTime(world.clock.now()));
  if (after.length === before.length && after.every((each) => before.includes(each))) return;
  const { taints: _, ...spec } = objectAt(object, "spec");
  world.store.put(nodes.storage, { ...object, spec: after.length === 0 ? spec : { ...spec, taints: after } });
}

/** Those that are there already stay as they are, with the time since when. */
function taintsFor({ spec, status }: Node, now: string): readonly Taint[] {
  const isTrue = (type: string): boolean =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === "True") === true;
  const due = [...keyOfCondition].filter(([type]) => isTrue(type)).map(([, key]) => key);
  const taints = spec?.taints ?? [];
  const isOurs = ({ key, effect }: Taint): boolean =>
    effect === "NoSchedule" && [...keyOfCondition.values()].includes(key);
  const kept = taints.filter((each) => !isOurs(each) || due.includes(each.key));
  const missing = due.filter((key) => !kept.some((each) => isOurs(each) && each.key === key));
  return [...kept, ...missing.map((key): Taint => ({ key, effect: "NoSchedule", timeAdded: now }))];
}
