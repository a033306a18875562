import {
  apiTime,
  isStaticPod,
  isTerminalPhase,
  newestOf,
  orderedPodIps,
  type PodStatus,
  qosClassOf,
  restartAllTrigger,
  usesRestartAll,
} from "../../ground/model/index.ts";
import { podConditions } from "./conditions.ts";
import { type ContainerStatuses, containerStatuses } from "./container-status.ts";
import type { StatusInput } from "./input.ts";
import { type PodPhase, podPhase } from "./phase.ts";
import { podLevelStatus } from "./pod-level-resources.ts";

/** The status of a pod as its users see it. Pure: the same input gives the same status. */
export function computePodStatus(input: StatusInput): PodStatus {
  const { pod, previous, node } = input;
  const statuses = containerStatuses(input);
  const isReplaced = (name: string): boolean => {
    const newest = newestOf(input.observed, name);
    return newest !== undefined && input.isReplaced?.(newest) === true;
  };
  const phase = settledPhase(input, podPhase(pod, statuses, { tornDown: input.tornDown, isReplaced }));
  const podIPs = pod.spec.hostNetwork === true ? node.hostIPs : addressesOf(input, phase);
  const carried = phase === previous?.phase ? { reason: previous.reason, message: previous.message } : {};
  return {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: podConditions(input, statuses, phase),
    ...definedOnly(carried),
    ...(node.hostIPs[0] === undefined ? {} : { hostIP: node.hostIPs[0], hostIPs: node.hostIPs.map((ip) => ({ ip })) }),
    ...(podIPs[0] === undefined ? {} : { podIP: podIPs[0], podIPs: podIPs.map((ip) => ({ ip })) }),
    startTime: previous?.startTime ?? apiTime(input.now),
    ...listsOf(statuses),
    qosClass: qosClassOf(pod),
    ...podLevelStatus(input),
  };
}

/**
 * The last word on a pod whose containers are gone for good: whatever is not accounted for counts as lost, and a pod
 * that never got anywhere has failed. Static pods keep their phase: their source may bring them back.
 */
export function finalPodStatus(input: StatusInput, status: PodStatus): PodStatus {
  const initialised = (status.initContainerStatuses ?? []).every(
    ({ state, started }) => state?.terminated?.exitCode === 0 || started === true,
  );
  const accountedFor = {
    ...(status.containerStatuses === undefined
      ? {}
      : {
          containerStatuses: status.containerStatuses.map((container) =>
            container.state?.terminated === undefined && initialised ? asLost(container) : container,
          ),
        }),
    ...(status.initContainerStatuses === undefined
      ? {}
      : {
          initContainerStatuses: status.initContainerStatuses.map((container) =>
            container.state?.running !== undefined ? asLost(container) : container,
          ),
        }),
  };
  const open = status.phase === "Pending" || status.phase === "Running";
  const phase: PodPhase = open && !isStaticPod(input.pod) ? "Failed" : ((status.phase ?? "Pending") as PodPhase);
  const ended: PodStatus = { ...status, ...accountedFor, phase };
  // Why it was not ready stays as it was; only what claims to be ready has to go.
  const claimsReady = (status.conditions ?? []).some(
    (condition) => (condition.type === "Ready" || condition.type === "ContainersReady") && condition.status === "True",
  );
  if (!claimsReady) return ended;
  return { ...ended, conditions: podConditions({ ...input, previous: status }, statusesOf(ended), phase) };
}

function asLost<Status extends NonNullable<PodStatus["containerStatuses"]>[number]>(container: Status): Status {
  return {
    ...container,
    ready: false,
    started: false,
    state: {
      terminated: {
        exitCode: 137,
        reason: "ContainerStatusUnknown",
        message: "The container could not be located when the pod was terminated",
        ...(container.containerID === undefined ? {} : { containerID: container.containerID }),
      },
    },
  };
}

/** A pod that has once ended stays ended. */
function settledPhase(input: StatusInput, computed: PodPhase): PodPhase {
  for (const earlier of [input.previous?.phase, input.pod.status?.phase]) {
    if (isTerminalPhase(earlier)) return earlier;
  }
  // One that starts anew in place, from its first init container on, does not cease to run for its users, and what is
  // stopped for it does not end it.
  const isStoppedForIt = !input.tornDown && restartAllTrigger(input.pod, input.observed) !== undefined;
  if (isTerminalPhase(computed)) return isStoppedForIt ? "Running" : computed;
  const startsAnew = computed === "Pending" && input.previous?.phase === "Running" && usesRestartAll(input.pod);
  return startsAnew ? "Running" : computed;
}

/** A pod that is over keeps the addresses it had: an agent that was started since can't learn them from the runtime. */
function addressesOf({ pod, observed, previous, node }: StatusInput, phase: PodPhase): readonly string[] {
  const isOver = isTerminalPhase(phase);
  if (observed.ips.length > 0 || !isOver) return orderedPodIps(observed.ips, node.hostIPs);
  return (previous?.podIPs ?? pod.status?.podIPs ?? []).map(({ ip }) => ip);
}

function listsOf(statuses: ContainerStatuses): Partial<PodStatus> {
  return {
    ...(statuses.init.length > 0 ? { initContainerStatuses: statuses.init } : {}),
    containerStatuses: statuses.regular,
    ...(statuses.ephemeral.length > 0 ? { ephemeralContainerStatuses: statuses.ephemeral } : {}),
  };
}

function statusesOf(status: PodStatus): ContainerStatuses {
  return {
    init: status.initContainerStatuses ?? [],
    regular: status.containerStatuses ?? [],
    ephemeral: status.ephemeralContainerStatuses ?? [],
  };
}

function definedOnly(carried: { reason?: string | undefined; message?: string | undefined }): Partial<PodStatus> {
  return {
    ...(carried.reason === undefined ? {} : { reason: carried.reason }),
    ...(carried.message === undefined ? {} : { message: carried.message }),
  };
}
