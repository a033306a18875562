import { apiTime, type Pod } from "../../../ground/model/index.ts";
import type { SpecialHandler } from "../http/api.ts";
import { writeOptions } from "../http/options.ts";
import { json } from "../http/reply.ts";
import { objectAt, stringAt } from "../json.ts";
import { pods } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { otherUid } from "../rest/update.ts";
import type { World } from "../rest/world.ts";
import { badRequest, conflict, notFound, type Subject } from "../status-error.ts";

const binding: Subject = { ...pods, plural: "pods/binding" };

/** POST pods/NAME/binding: puts a pod on a node. */
export const bindPod: SpecialHandler = async (call, world) => {
  const body = await call.body();
  const { dryRun } = writeOptions(call.user, call.query, call.warn);
  const nodeName = stringAt(body, "target", "name");
  if (nodeName === "") throw badRequest("target.name: Required value");
  const found = world.store.get(pods.storage, keyOf(call.namespace, call.name));
  if (found === undefined) throw notFound(pods, call.name);
  const uid = stringAt(body, "metadata", "uid");
  if (uid !== "" && uid !== found.metadata.uid) {
    throw conflict(pods, call.name, otherUid(pods, found, uid));
  }
  const bound = boundTo(world, found, nodeName);
  if (!dryRun) world.store.put(pods.storage, bound);
  return json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }, 201);
};

/** The pod on the node; refuses one that is on a node already, on its way out, or held by a gate. */
export function boundTo(world: World, pod: ApiObject, nodeName: string): ApiObject {
  const name = pod.metadata.name ?? "";
  const { spec, status } = pod as unknown as Pod;
  if (spec?.nodeName) throw conflict(binding, name, `pod ${name} is already assigned to node "${spec.nodeName}"`);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(binding, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if ((spec?.schedulingGates ?? []).length > 0) {
    throw conflict(binding, name, `pod ${name} has non-empty .spec.schedulingGates`);
  }
  const scheduled = {
    type: "PodScheduled",
    status: "True",
    lastProbeTime: null,
    lastTransitionTime: apiTime(world.clock.now()),
  };
  const others = (status?.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  return {
    ...pod,
    spec: { ...objectAt(pod, "spec"), nodeName },
    status: { ...objectAt(pod, "status"), conditions: [...others, scheduled] },
  };
}
