import type { ObservedContainer, ObservedSandbox, Pod, PodUid } from "../../../ground/model/index.ts";
import type { LocalViews, RuntimeViews } from "../ports.ts";
import { AnswerError } from "./answer-error.ts";

export interface NamedPod {
  readonly pod: Pod;
  readonly uid: PodUid;
  /** `name_namespace`, as messages call it. */
  readonly fullName: string;
}

/** The pod of that name. While one is on its way out and its successor is there, the successor. */
export function podNamed(views: Pick<LocalViews, "pods">, namespace: string, name: string): NamedPod | undefined {
  const named = views.pods().filter(({ metadata }) => metadata?.name === name && metadata.namespace === namespace);
  const pod = named.findLast(({ metadata }) => metadata?.deletionTimestamp === undefined) ?? named.at(-1);
  const uid = pod?.metadata?.uid;
  if (pod === undefined || uid === undefined) return undefined;
  return { pod, uid: uid as PodUid, fullName: `${name}_${namespace}` };
}

export function requirePod(views: Pick<LocalViews, "pods">, namespace: string, name: string): NamedPod {
  const found = podNamed(views, namespace, name);
  if (found === undefined) throw new AnswerError(404, "pod does not exist");
  return found;
}

/** All container names of the spec. */
export function containerNames({ spec }: Pod): readonly string[] {
  const all = [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])];
  return all.map(({ name }) => name);
}

/** The running instance; the runtime is asked anew when what was last seen has none. */
export async function runningContainer(
  runtime: RuntimeViews,
  uid: PodUid,
  name: string,
  signal: AbortSignal,
): Promise<ObservedContainer | undefined> {
  const isIt = (container: ObservedContainer): boolean => container.name === name && container.state === "running";
  const known = runtime.latest(uid)?.containers.find(isIt);
  return known ?? (await runtime.look(uid, signal)).containers.find(isIt);
}

/** The sandbox that is up. */
export async function readySandbox(
  runtime: RuntimeViews,
  uid: PodUid,
  signal: AbortSignal,
): Promise<ObservedSandbox | undefined> {
  const isIt = ({ state }: ObservedSandbox): boolean => state === "ready";
  return runtime.latest(uid)?.sandboxes.find(isIt) ?? (await runtime.look(uid, signal)).sandboxes.find(isIt);
}
