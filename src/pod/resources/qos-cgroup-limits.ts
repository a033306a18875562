import {
  addAmounts,
  type IdentifiedPod,
  milliUnits,
  minShares,
  podResources,
  type QosClass,
  qosClassOf,
  type ResourceAmounts,
  sharesOfMilliCpu,
  wholeUnits,
} from "../../ground/model/index.ts";
import { atMostBytes, type CgroupValues } from "./cgroup-values.ts";

const unlimitedPages = 2n ** 62n;

export interface TierSettings {
  readonly memoryQos: boolean;
  readonly hugePageSizes: readonly bigint[];
}

export interface TierValues {
  readonly burstable: CgroupValues;
  readonly bestEffort: CgroupValues;
  /** What the pods add to the limits of the cgroup above both. */
  readonly kubepods: CgroupValues;
}

/** The classes of pods share the CPUs in proportion to what their active pods request; best effort gets the rest. */
export function tierValues(activePods: readonly IdentifiedPod[], settings: TierSettings): TierValues {
  const burstable = requestsOf(activePods, "Burstable");
  const pages = settings.hugePageSizes;
  const hugePages = pages.length === 0 ? {} : { hugePages: new Map(pages.map((size) => [size, unlimitedPages])) };
  const kept = (requests: ResourceAmounts): CgroupValues =>
    settings.memoryQos ? { memoryMinBytes: atMostBytes(wholeUnits(requests.get("memory") ?? 0n)) } : {};
  return {
    burstable: {
      cpuShares: sharesOfMilliCpu(Number(milliUnits(burstable.get("cpu") ?? 0n))),
      ...kept(burstable),
      ...hugePages,
    },
    bestEffort: { cpuShares: minShares, ...hugePages },
    kubepods: kept(addAmounts(burstable, requestsOf(activePods, "Guaranteed"))),
  };
}

function requestsOf(pods: readonly IdentifiedPod[], qos: "Burstable" | "Guaranteed"): ResourceAmounts {
  let sum: ResourceAmounts = new Map();
  for (const claim of pods.map(claimOf)) {
    if (claim.qos === qos) sum = addAmounts(sum, claim.requests);
  }
  return sum;
}

interface Claim {
  readonly qos: QosClass;
  readonly requests: ResourceAmounts;
}

/** Pods are replaced, never changed, and this is asked of all of them each time one starts. */
const claims = new WeakMap<IdentifiedPod, Claim>();

function claimOf(pod: IdentifiedPod): Claim {
  const known = claims.get(pod);
  if (known !== undefined) return known;
  const claim = { qos: qosClassOf(pod), requests: podResources(pod.spec, "with overhead").requests };
  claims.set(pod, claim);
  return claim;
}
