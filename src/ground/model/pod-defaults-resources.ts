import type { PodSpec, Quantity } from "./kube/gen/types.ts";
import { isPodLevelResource, sumOfContainers } from "./pod-resources.ts";
import { formatQuantity } from "./quantity-format.ts";
import { isHugePages, type ResourceAmounts } from "./resource-list.ts";

type ResourceList = Readonly<Record<string, Quantity>>;

/**
 * Completes resources set for the pod as a whole. Huge pages cannot be overcommitted, so a pod that sets anything at
 * this level is limited to what its containers claim; requests come from the containers, and else from the limits.
 */
export function defaultPodLevelResources(spec: PodSpec): PodSpec {
  const { resources } = spec;
  if (resources === undefined) return spec;
  const { limits: givenLimits = {}, requests: givenRequests = {} } = resources;
  if (isEmpty(givenLimits) && isEmpty(givenRequests)) return spec;
  const hugePages = only(
    sumOfContainers(spec, "limits"),
    (name) => isHugePages(name) && givenRequests[name] === undefined,
  );
  const limits = { ...hugePages, ...givenLimits };
  const fromContainers = only(
    sumOfContainers(spec, "requests"),
    (name) => isPodLevelResource(name) && !isHugePages(name),
  );
  const fromLimits = Object.fromEntries(Object.entries(limits).filter(([name]) => isPodLevelResource(name)));
  const requests = isEmpty(limits) ? givenRequests : { ...fromLimits, ...fromContainers, ...givenRequests };
  return {
    ...spec,
    resources: {
      ...resources,
      ...(!isEmpty(limits) && { limits }),
      ...(!isEmpty(requests) && { requests }),
    },
  };
}

function isEmpty(list: ResourceList): boolean {
  return Object.keys(list).length === 0;
}

function only(amounts: ResourceAmounts, keep: (name: string) => boolean): ResourceList {
  const kept = [...amounts].filter(([name]) => keep(name));
  return Object.fromEntries(
    kept.map(([name, amount]) => [name, formatQuantity(amount, name === "cpu" ? "decimal" : "binary")]),
  );
}
