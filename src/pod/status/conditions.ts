import {
  apiTime,
  type ContainerStatus,
  type IdentifiedPod,
  isSidecar,
  isTerminalPhase,
  named,
  type PodCondition,
  type PodStatus,
} from "../../ground/model/index.ts";
import type { ContainerStatuses } from "./container-status.ts";
import type { StatusInput } from "./input.ts";
import type { PodPhase } from "./phase.ts";
import { resizeConditions } from "./resize-status.ts";
import { restartingAllType, restartingAllVerdict, staysInitialised } from "./restarting-all.ts";

const ownedTypes = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] as const;
type OwnedType = (typeof ownedTypes)[number];
/** There while they are true, and gone otherwise. */
const resizeTypes = ["PodResizePending", "PodResizeInProgress"];
/** There only for pods that may need them. */
const rareTypes: readonly string[] = [restartingAllType];

/** Whether the condition is for the node agent alone to write. */
export function isOwnCondition({ type }: PodCondition): boolean {
  return (ownedTypes as readonly string[]).includes(type) || resizeTypes.includes(type) || rareTypes.includes(type);
}

interface Verdict {
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
}

/** Our status with the conditions of others as the API has them: they write there, not here. */
export function withForeignConditions(own: PodStatus, api: PodStatus | undefined): PodStatus {
  if (api?.conditions === undefined) return own;
  const kept = (own.conditions ?? []).filter(isOwnCondition);
  return { ...own, conditions: [...api.conditions.filter((condition) => !isOwnCondition(condition)), ...kept] };
}

/** Conditions of others first, then ours; the time of a condition moves only when its status does. */
export function podConditions(
  input: StatusInput,
  statuses: ContainerStatuses,
  phase: PodPhase,
): readonly PodCondition[] {
  const previous = input.previous?.conditions ?? [];
  const foreign = previous.filter((candidate) => !isOwnCondition(candidate));
  const containersReady = containersReadyVerdict(input.pod, statuses, phase);
  const verdicts: Readonly<Record<OwnedType, Verdict>> = {
    PodReadyToStartContainers: { status: input.sandboxReady ? "True" : "False" },
    Initialized: initializedVerdict(input, statuses, phase),
    Ready: readyVerdict(input.pod, previous, containersReady),
    ContainersReady: containersReady,
    PodScheduled: { status: "True" },
  };
  const isOver = isTerminalPhase(phase);
  const resize = isOver ? [] : resizeConditions(input);
  const restarting = restartingAllVerdict(input);
  const rare = restarting === undefined ? [] : [condition(input, restartingAllType, restarting)];
  return [...foreign, ...resize, ...rare, ...ownedTypes.map((type) => condition(input, type, verdicts[type]))];
}

function condition(input: StatusInput, type: OwnedType | typeof restartingAllType, verdict: Verdict): PodCondition {
  const before = input.previous?.conditions?.find((candidate) => candidate.type === type);
  const unchanged = before?.status === verdict.status && before.lastTransitionTime !== undefined;
  return {
    type,
    ...verdict,
    lastTransitionTime: unchanged ? before.lastTransitionTime : apiTime(input.now),
    ...(input.pod.metadata.generation === undefined ? {} : { observedGeneration: input.pod.metadata.generation }),
  };
}

function initializedVerdict({ pod, previous }: StatusInput, statuses: ContainerStatuses, phase: PodPhase): Verdict {
  const { initContainers = [] } = pod.spec;
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  const begun = statuses.regular.some(({ state }) => state?.running !== undefined || state?.terminated !== undefined);
  if (begun || staysInitialised(pod, previous)) return { status: "True" };
  const { unknown, lacking } = sortOut(initContainers, statuses.init, (status, container) =>
    isSidecar(container) ? status.started === true : status.ready,
  );
  return notAll("ContainersNotInitialized", "incomplete", unknown, lacking);
}

function containersReadyVerdict(pod: IdentifiedPod, statuses: ContainerStatuses, phase: PodPhase): Verdict {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  if (phase === "Failed") return { status: "False", reason: "PodFailed" };
  const sidecars = (pod.spec.initContainers ?? []).filter(isSidecar);
  const wanted = [...sidecars, ...pod.spec.containers];
  const { unknown, lacking } = sortOut(wanted, [...statuses.init, ...statuses.regular], (status) => status.ready);
  return notAll("ContainersNotReady", "unready", unknown, lacking);
}

function readyVerdict(pod: IdentifiedPod, known: readonly PodCondition[], containersReady: Verdict): Verdict {
  if (containersReady.status === "False") return containersReady;
  const closed = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const gate = known.find(({ type }) => type === conditionType);
    if (gate === undefined) return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    if (gate.status !== "True") {
      return [`the status of pod readiness gate "${conditionType}" is not "True", but ${gate.status}`];
    }
    return [];
  });
  if (closed.length === 0) return { status: "True" };
  return { status: "False", reason: "ReadinessGatesNotReady", message: closed.join(", ") };
}

function sortOut<Spec extends { readonly name: string }>(
  wanted: readonly Spec[],
  statuses: readonly ContainerStatus[],
  isFine: (status: ContainerStatus, spec: Spec) => boolean,
): { readonly unknown: readonly string[]; readonly lacking: readonly string[] } {
  const unknown: string[] = [];
  const lacking: string[] = [];
  for (const spec of wanted) {
    const status = named(statuses, spec.name);
    if (status === undefined) unknown.push(spec.name);
    else if (!isFine(status, spec)) lacking.push(spec.name);
  }
  return { unknown, lacking };
}

function notAll(reason: string, adjective: string, unknown: readonly string[], lacking: readonly string[]): Verdict {
  if (unknown.length === 0 && lacking.length === 0) return { status: "True" };
  const parts = [
    ...(unknown.length > 0 ? [`containers with unknown status: [${unknown.join(" ")}]`] : []),
    ...(lacking.length > 0 ? [`containers with ${adjective} status: [${lacking.join(" ")}]`] : []),
  ];
  return { status: "False", reason, message: parts.join(", ") };
}
