import { apiTime, isTerminalPhase, type Node, type Pod } from "../../../ground/model/index.ts";
import { isObject, listAt, objectAt } from "../json.ts";
import { nodes, pods } from "../kinds/index.ts";
import { type ApiObject, keyOfObject } from "../object.ts";
import type { World } from "../rest/world.ts";
import { boundTo } from "../special/index.ts";
import { recordPodEvent } from "./events.ts";
import { unfitness } from "./fitness.ts";

const asPod = (object: ApiObject): Pod => object as unknown as Pod;
const asNode = (object: ApiObject): Node => object as unknown as Node;

/** Puts pods that are on no node on the fitting one with the fewest pods; what resources they ask for is not counted. */
export function runBinder(world: World): () => void {
  const stops = [
    world.store.subscribe(pods.storage, ({ type, object }) => {
      if (type !== "DELETED") place(world, object);
    }),
    world.store.subscribe(nodes.storage, ({ type }) => {
      if (type !== "DELETED") for (const object of world.store.list(pods.storage)) place(world, object);
    }),
  ];
  for (const object of world.store.list(pods.storage)) place(world, object);
  return () => {
    for (const stop of stops) stop();
  };
}

function place(world: World, seen: ApiObject): void {
  const object = world.store.get(pods.storage, keyOfObject(seen));
  if (object === undefined || !isWaiting(object)) return;
  const candidates = world.store.list(nodes.storage);
  const reasons = new Map<string, number>();
  const fitting = candidates.filter((node) => {
    const reason = unfitness(asPod(object), asNode(node));
    if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    return reason === undefined;
  });
  const chosen = withFewestPods(world, fitting);
  if (chosen === undefined) {
    reportUnschedulable(world, object, candidates.length, reasons);
    return;
  }
  world.store.put(pods.storage, boundTo(world, object, chosen));
  const { namespace, name } = object.metadata;
  recordPodEvent(world, object, "Normal", "Scheduled", `Successfully assigned ${namespace}/${name} to ${chosen}`);
}

function isWaiting(object: ApiObject): boolean {
  const { spec, status } = asPod(object);
  if (spec?.nodeName || object.metadata.deletionTimestamp !== undefined) return false;
  if (isTerminalPhase(status?.phase)) return false;
  return spec?.schedulerName === "default-scheduler" && (spec.schedulingGates ?? []).length === 0;
}

function withFewestPods(world: World, fitting: readonly ApiObject[]): string | undefined {
  if (fitting.length <= 1) return fitting[0]?.metadata.name;
  const counts = new Map(fitting.map(({ metadata }) => [metadata.name ?? "", 0]));
  for (const object of world.store.list(pods.storage)) {
    const name = asPod(object).spec?.nodeName ?? "";
    const count = counts.get(name);
    if (count !== undefined) counts.set(name, count + 1);
  }
  const [fewest] = [...counts].sort(([, a], [, b]) => a - b);
  return fewest?.[0];
}

function reportUnschedulable(
  world: World,
  object: ApiObject,
  count: number,
  reasons: ReadonlyMap<string, number>,
): void {
  const parts = [...reasons].map(([reason, times]) => `${times} ${reason}`);
  const message =
    count === 0 ? "no nodes available to schedule pods" : `0/${count} nodes are available: ${parts.sort().join(", ")}.`;
  const conditions = listAt(object, "status", "conditions").filter(isObject);
  const old = conditions.find(({ type }) => type === "PodScheduled");
  if (old?.["message"] === message) return;
  const condition = {
    type: "PodScheduled",
    status: "False",
    reason: "Unschedulable",
    message,
    lastTransitionTime: old?.["lastTransitionTime"] ?? apiTime(world.clock.now()),
    observedGeneration: object.metadata.generation,
  };
  const others = conditions.filter(({ type }) => type !== "PodScheduled");
  const status = { ...objectAt(object, "status"), conditions: [...others, condition] };
  world.store.put(pods.storage, { ...object, status });
  recordPodEvent(world, object, "Warning", "FailedScheduling", message);
}
