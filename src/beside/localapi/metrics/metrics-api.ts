import { mapAtMost, withDeadline } from "../../../ground/base/index.ts";
import { apiTime } from "../../../ground/model/index.ts";
import type { KeyPair } from "../auth/certificates.ts";
import type { SpecialCall, SpecialHandler } from "../http/api.ts";
import { json, type Reply } from "../http/reply.ts";
import type { JsonObject } from "../json.ts";
import { nodes, pods } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { forward, readUpTo } from "../proxy/forward.ts";
import { kubeletTarget } from "../proxy/target.ts";
import { matcherOf } from "../rest/list.ts";
import type { World } from "../rest/world.ts";
import { methodNotAllowed, notFound, type Subject } from "../status-error.ts";
import { nodeUsage, podUsages } from "./usage.ts";

const apiVersion = "metrics.k8s.io/v1beta1";
const group = "metrics.k8s.io";
/** What the figures of a kubelet are the mean of, about. */
const window = "10s";

/** Simulated nodes come in hundreds, and each answer may be megabytes. */
const kubeletsAtOnce = 16;

/** GET nodes of metrics.k8s.io: what `kubectl top nodes` shows. The figures are those of the kubelets at this moment. */
export function nodeMetrics(identity: KeyPair): SpecialHandler {
  return async (call, world) => {
    const chosen = world.store.list(nodes.storage).filter(matcherOf(nodes, "", call.query));
    const wanted = call.name === "" ? chosen : chosen.filter(({ metadata }) => metadata.name === call.name);
    const items = await mapAtMost(kubeletsAtOnce, wanted, async (node) => {
      const measured = nodeUsage(await summaryOf(world, node, identity, call));
      return measured === undefined ? [] : [item(world, "NodeMetrics", node, measured.timestamp, measured)];
    });
    return answer(call, items.flat(), { group, kind: "NodeMetrics", plural: "nodes" });
  };
}

/** GET pods of metrics.k8s.io: what `kubectl top pods` shows. */
export function podMetrics(identity: KeyPair): SpecialHandler {
  return async (call, world) => {
    const isChosen = matcherOf(pods, call.namespace, call.query);
    const summaries = await mapAtMost(kubeletsAtOnce, world.store.list(nodes.storage), (node) =>
      summaryOf(world, node, identity, call),
    );
    const items = summaries.flatMap(podUsages).flatMap(({ namespace, name, timestamp: at, containers }) => {
      const pod = world.store.get(pods.storage, keyOf(namespace, name));
      if (pod === undefined || !isChosen(pod) || (call.name !== "" && call.name !== name)) return [];
      return [item(world, "PodMetrics", pod, at, { containers })];
    });
    return answer(call, items, { group, kind: "PodMetrics", plural: "pods" });
  };
}

/** A node of a thousand pods tells of them in half of this. */
const mostSummaryBytes = 16 * 1024 * 1024;
/** One kubelet that hangs shall not keep the figures of the others. */
const summaryWithinMs = 10_000;

/** A kubelet that does not answer is one of which nothing is known. */
async function summaryOf(
  world: World,
  node: ApiObject,
  identity: KeyPair,
  call: Pick<SpecialCall, "clientLeft">,
): Promise<unknown> {
  const late = (): Error => new Error("the kubelet gave no figures in time");
  try {
    return await withDeadline(world.clock, summaryWithinMs, late, call.clientLeft(), async (signal) => {
      const target = kubeletTarget(world, node.metadata.name ?? "", "/stats/summary");
      const response = await forward(target, { method: "GET", headers: {} }, identity, signal);
      const text = await readUpTo(response, mostSummaryBytes);
      return response.statusCode === 200 ? JSON.parse(text) : undefined;
    });
  } catch {
    return undefined;
  }
}

function item(world: World, kind: string, object: ApiObject, at: string, figures: JsonObject): JsonObject {
  const { name, namespace, labels } = object.metadata;
  const metadata = {
    name,
    ...(namespace !== undefined && { namespace }),
    creationTimestamp: apiTime(world.clock.now()),
    ...(labels !== undefined && { labels }),
  };
  return { kind, apiVersion, metadata, timestamp: at, window, ...figures };
}

function answer(
  { name, method }: { readonly name: string; readonly method: string },
  items: readonly JsonObject[],
  subject: Subject,
): Reply {
  if (method !== "GET") throw methodNotAllowed();
  if (name === "") return json({ kind: `${subject.kind}List`, apiVersion, metadata: {}, items });
  const [found] = items;
  if (found === undefined) throw notFound(subject, name);
  return json(found);
}
