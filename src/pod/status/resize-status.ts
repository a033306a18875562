import {
  amountIn,
  apiTime,
  type Container,
  type ContainerResources,
  duePodResize,
  dueResize,
  formatQuantity,
  newestOf,
  type ObservedContainer,
  type ObservedResources,
  type PodCondition,
  type ResizableResource,
  resizableContainers,
} from "../../ground/model/index.ts";
import type { StatusInput } from "./input.ts";

/** Below these the kernel has no smaller value, so that what it has says less than what was promised. */
const leastCpuLimit = 10_000_000n;
const leastCpuRequest = 2_000_000n;
const nano = 1_000_000_000n;

/** Whether the pod, or a running container of it, does not have yet what it was promised. */
function isResizing({ pod, observed, resize: { given, isUnderWay } }: StatusInput): boolean {
  if (isUnderWay || duePodResize(pod, given).changed.length > 0) return true;
  return resizableContainers(pod).some((container) => {
    const newest = newestOf(observed, container.name);
    return newest?.state === "running" && dueResize(pod, container, newest, given).changed.length > 0;
  });
}

/** There while they are true, and gone otherwise. */
export function resizeConditions(input: StatusInput): readonly PodCondition[] {
  const { pending, accepted, error } = input.resize;
  const conditions: PodCondition[] = [];
  if (pending !== undefined) {
    const { reason, message, generation } = pending;
    conditions.push(condition(input, { type: "PodResizePending", reason, message }, generation));
  }
  if (isResizing(input)) {
    const begun = input.previous?.conditions?.find(({ type }) => type === "PodResizeInProgress");
    const generation =
      (accepted ?? { generation: begun?.observedGeneration }).generation ?? input.pod.metadata.generation;
    const failure = error === undefined ? {} : { reason: "Error", message: error };
    conditions.push(condition(input, { type: "PodResizeInProgress", ...failure }, generation));
  }
  return conditions;
}

/** Its times move with the reason. */
function condition(
  { previous, now }: StatusInput,
  said: { readonly type: string; readonly reason?: string; readonly message?: string },
  generation: number | undefined,
): PodCondition {
  const before = previous?.conditions?.find(({ type }) => type === said.type);
  const isSame = before !== undefined && (before.reason ?? "") === (said.reason ?? "");
  const time = apiTime(now);
  return {
    ...said,
    status: "True",
    lastProbeTime: isSame ? (before.lastProbeTime ?? time) : time,
    lastTransitionTime: isSame ? (before.lastTransitionTime ?? time) : time,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
}

/** What the container has: by the runtime's word where it gives it, else as it was given, else as it was promised. */
export function shownResources(
  { resize }: StatusInput,
  { resources: promised = {} }: Container,
  newest: ObservedContainer,
): ContainerResources {
  if (newest.state !== "running") return promised;
  return shownWith(promised, resize.given.to(newest) ?? promised, newest.resources);
}

/** The promise, with the amounts that are in effect. */
export function shownWith(
  promised: ContainerResources,
  given: ContainerResources,
  told: ObservedResources | undefined,
): ContainerResources {
  const { limits, requests } = promised;
  return {
    ...promised,
    ...(limits === undefined
      ? {}
      : {
          limits: {
            ...limits,
            ...shown("cpu", promised, "limits", cpuLimit(promised, given, told)),
            ...shown("memory", promised, "limits", memoryLimit(given, told)),
          },
        }),
    ...(requests === undefined
      ? {}
      : {
          requests: {
            ...requests,
            ...shown("cpu", promised, "requests", cpuRequest(promised, given, told)),
            ...shown("memory", promised, "requests", amountIn(given, "requests", "memory")),
          },
        }),
  };
}

function cpuLimit(
  promised: ContainerResources,
  given: ContainerResources,
  told: ObservedResources | undefined,
): bigint | undefined {
  const known = amountIn(given, "limits", "cpu");
  if (told === undefined || told.cpuQuota <= 0 || told.cpuPeriod <= 0) return known;
  const amount = (BigInt(told.cpuQuota) * 1000n * 1_000_000n) / BigInt(told.cpuPeriod);
  const isTelling = amount > leastCpuLimit || (amountIn(promised, "limits", "cpu") ?? 0n) > leastCpuLimit;
  return isTelling ? amount : amountIn(promised, "limits", "cpu");
}

function cpuRequest(
  promised: ContainerResources,
  given: ContainerResources,
  told: ObservedResources | undefined,
): bigint | undefined {
  const known = amountIn(given, "requests", "cpu");
  if (told === undefined || told.cpuShares < 2) return known;
  const milli = (BigInt(told.cpuShares) * 1000n + 1023n) / 1024n;
  const amount = milli * 1_000_000n;
  const isTelling = amount > leastCpuRequest || (amountIn(promised, "requests", "cpu") ?? 0n) > leastCpuRequest;
  return isTelling ? amount : amountIn(promised, "requests", "cpu");
}

function memoryLimit(given: ContainerResources, told: ObservedResources | undefined): bigint | undefined {
  if (told === undefined || told.memoryLimitBytes <= 0n) return amountIn(given, "limits", "memory");
  return told.memoryLimitBytes * nano;
}

/** In the words of the promise where it is the same amount: "1" must not turn into "1000m". */
function shown(
  resource: ResizableResource,
  promised: ContainerResources,
  list: "requests" | "limits",
  amount: bigint | undefined,
): Readonly<Record<string, string>> {
  const wording = promised[list]?.[resource];
  if (amount === undefined || wording === undefined || amountIn(promised, list, resource) === amount) return {};
  return { [resource]: formatQuantity(amount, resource === "cpu" ? "decimal" : "binary") };
}
