import { apiTime, matchesLabelSelector, type PodDisruptionBudget } from "../../../ground/model/index.ts";
import { nodeMayTouchPod } from "../admission/node-restriction.ts";
import type { SpecialHandler } from "../http/api.ts";
import { readDeleteOptions, writeOptions } from "../http/options.ts";
import { json } from "../http/reply.ts";
import { listAt, objectAt, stringAt } from "../json.ts";
import { pods } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { deleteObject } from "../rest/delete.ts";
import type { World } from "../rest/world.ts";
import { notFound, StatusError } from "../status-error.ts";

/** POST pods/NAME/eviction: deletes the pod unless a disruption budget forbids it. */
export const evictPod: SpecialHandler = async (call, world) => {
  const body = await call.body();
  const pod = world.store.get(pods.storage, keyOf(call.namespace, call.name));
  if (pod === undefined) throw notFound(pods, call.name);
  nodeMayTouchPod(pod, call.user, "evict");
  if (isRunning(pod)) requireBudget(world, pod);
  const wanted = readDeleteOptions(objectAt(body, "deleteOptions"), call.query);
  const options = writeOptions(call.user, call.query, call.warn);
  const dryRun = options.dryRun || wanted.dryRun;
  if (!dryRun && stringAt(pod, "spec", "nodeName") !== "") markDisrupted(world, pod);
  deleteObject(world, pods, call.namespace, call.name, wanted, { ...options, dryRun });
  return json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }, 201);
};

/** Whoever looks at the pod later shall know why it ended. */
function markDisrupted(world: World, pod: ApiObject): void {
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastProbeTime: null,
    lastTransitionTime: apiTime(world.clock.now()),
  };
  const others = listAt(pod, "status", "conditions").filter((each) => stringAt(each, "type") !== "DisruptionTarget");
  world.store.put(pods.storage, { ...pod, status: { ...objectAt(pod, "status"), conditions: [...others, condition] } });
}

function isRunning(pod: ApiObject): boolean {
  return stringAt(pod, "status", "phase") === "Running" && pod.metadata.deletionTimestamp === undefined;
}

function requireBudget(world: World, pod: ApiObject): void {
  for (const object of world.store.list("poddisruptionbudgets")) {
    const { spec, status } = object as unknown as PodDisruptionBudget;
    if (object.metadata.namespace !== pod.metadata.namespace) continue;
    const { selector } = spec ?? {};
    if (selector === undefined || !matchesLabelSelector(selector, pod.metadata.labels ?? {})) continue;
    if (status === undefined || status.disruptionsAllowed > 0) continue;
    const message = "Cannot evict pod as it would violate the pod's disruption budget.";
    throw new StatusError(429, "TooManyRequests", message, {
      causes: [
        {
          reason: "DisruptionBudget",
          message: `The disruption budget ${object.metadata.name} needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently`,
        },
      ],
    });
  }
}
