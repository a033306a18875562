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
  /** The MemoryQoS gate, on cgroup v2. */
  readonly memoryQos: boolean;
  /** In bytes, every size of this machine's kernel. */
  readonly hugePageSizes: readonly bigint[];
  /** The QOSReserved gate. Undefined: the classes share memory as it comes. */
  readonly memoryReserve?: ClassReserve | undefined;
}

/** How much of what pods of the better classes request is kept from the others. */
export interface ClassReserve {
  readonly percent: bigint;
  /** What all pods together may use, in bytes. */
  readonly allocatable: bigint;
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
  const guaranteed = requestsOf(activePods, "Guaranteed");
  const limits = memoryLimits(settings.memoryReserve, { guaranteed, burstable });
  return {
    burstable: {
      cpuShares: sharesOfMilliCpu(Number(milliUnits(burstable.get("cpu") ?? 0n))),
      ...limits?.burstable,
      ...kept(burstable),
      ...hugePages,
    },
    bestEffort: { cpuShares: minShares, ...limits?.bestEffort, ...hugePages },
    kubepods: kept(addAmounts(burstable, guaranteed)),
  };
}

type MemoryLimit = Required<Pick<CgroupValues, "memoryLimitBytes">>;

/** Burstable pods get what Guaranteed ones leave of their requests, and best effort what both leave. */
function memoryLimits(
  reserve: ClassReserve | undefined,
  requests: Readonly<Record<"guaranteed" | "burstable", ResourceAmounts>>,
): Readonly<Record<"burstable" | "bestEffort", MemoryLimit>> | undefined {
  // Nothing is known of the machine, or nothing is left for pods: a limit of zero would kill them all.
  if (reserve === undefined || reserve.allocatable <= 0n) return undefined;
  const keptFor = (amounts: ResourceAmounts): bigint =>
    (wholeUnits(amounts.get("memory") ?? 0n) * reserve.percent) / 100n;
  const forBurstable = reserve.allocatable - keptFor(requests.guaranteed);
  const limit = (bytes: bigint): MemoryLimit => ({ memoryLimitBytes: atMostBytes(bytes > 0n ? bytes : 0n) });
  return { burstable: limit(forBurstable), bestEffort: limit(forBurstable - keptFor(requests.burstable)) };
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
