import type { EvictionThreshold } from "../../../ground/config/index.ts";
import { type Container, canonicalQuantity, type IdentifiedPod, parseQuantity } from "../../../ground/model/index.ts";
import { amountText, type Observations, type ScarceResource, signalFacts } from "./signals.ts";
import { wantedText } from "./threshold-amounts.ts";
import type { ContainerUse, PodUse } from "./usage.ts";

/** What is told of an eviction: to users in status and event, to machines in the event's annotations. */
export interface EvictionWords {
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const nanosPerUnit = 1_000_000_000;

/** The words are those of the kubelet, which people search for and controllers match. */
export function evictionWords(
  pod: IdentifiedPod,
  use: PodUse | undefined,
  resource: ScarceResource,
  { acting, observations }: { readonly acting: readonly EvictionThreshold[]; readonly observations: Observations },
): EvictionWords {
  const pieces = [`The node was low on resource: ${resource}. `];
  const threshold = acting.find(({ signal }) => signalFacts[signal].resource === resource && observations.has(signal));
  const observed = threshold && observations.get(threshold.signal);
  if (threshold !== undefined && observed !== undefined) {
    const available = amountText(observed.available, signalFacts[threshold.signal].format);
    pieces.push(`Threshold quantity: ${wantedText(threshold, observed)}, available: ${available}. `);
  }
  if (use === undefined) return { message: pieces.join(""), annotations: {} };
  const ofPod = resource === "memory" ? podPart(pod, use) : undefined;
  if (ofPod !== undefined) pieces.push(ofPod.piece);
  const offenders = (use.containers ?? []).flatMap((container) => offence(pod, container, resource));
  pieces.push(...offenders.map(({ piece }) => piece));
  return {
    message: pieces.join(""),
    annotations: {
      ...ofPod?.annotations,
      offending_containers: offenders.map(({ name }) => name).join(","),
      offending_containers_usage: offenders.map(({ used }) => used).join(","),
      starved_resource: resource,
    },
  };
}

/** A pod that asks for memory as a whole is named as a whole. */
function podPart({ metadata, spec }: IdentifiedPod, { memoryBytes }: PodUse) {
  const request = spec.resources?.requests?.["memory"];
  if (request === undefined || memoryBytes === undefined) return undefined;
  const used = amountText(memoryBytes, "binary");
  const { name } = metadata;
  const piece = `Pod ${name} was using ${used}, request is ${canonicalQuantity(request)}, has larger consumption of memory. `;
  return { piece, annotations: { offending_pod: name, offending_pod_usage: used } };
}

function offence({ spec }: IdentifiedPod, container: ContainerUse, resource: ScarceResource) {
  const used =
    resource === "memory" ? container.memoryBytes : resource === "ephemeral-storage" ? container.diskBytes : undefined;
  const declared: Container | undefined = [...spec.containers, ...(spec.initContainers ?? [])].find(
    ({ name }) => name === container.name,
  );
  if (used === undefined || declared === undefined) return [];
  const request = declared.resources?.requests?.[resource] ?? "0";
  if (used <= Number(parseQuantity(request)) / nanosPerUnit) return [];
  const { name } = container;
  const usage = amountText(used, "binary");
  const wanted = canonicalQuantity(request);
  const piece = `Container ${name} was using ${usage}, request is ${wanted}, has larger consumption of ${resource}. `;
  return [{ name, used: usage, piece }];
}
