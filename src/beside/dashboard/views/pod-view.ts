import { constants } from "node:os";
import {
  amountsOf,
  type ContainerState,
  type ContainerStateTerminated,
  type ContainerStatus,
  containersOf,
  type IdentifiedPod,
  type Pod,
  type PodContainer,
  type PodUid,
  qosClassOf,
} from "../../../ground/model/index.ts";
import type { Sampler } from "../live/sampler.ts";
import type { DashboardPorts } from "../ports.ts";
import type { ContainerDetails, ExitView, PodDetails, Tone } from "../wire.ts";
import { adviceFor, endingOf } from "./advice.ts";
import { conditionView } from "./condition-view.ts";
import { podNames, pullShown } from "./images-view.ts";
import { lookAtPulls } from "./look-at-pulls.ts";
import { exitText, podRow, timeOf, wholeOf } from "./pod-row.ts";
import { probeView } from "./probe-view.ts";
import { volumeViews } from "./volume-view.ts";

const mostEvents = 50;

/** Everything about one pod; undefined: there is none of this uid. */
export async function podView(
  uid: string,
  ports: DashboardPorts,
  sampler: Sampler | undefined,
  signal: AbortSignal,
): Promise<PodDetails | undefined> {
  const { pods, clock, facts, events } = ports;
  const pod = podOf(uid, ports);
  if (pod === undefined) return undefined;
  const ledger = pods.ledger(uid as PodUid);
  const probes = pods.probes(uid as PodUid);
  const containers = containersOf(pod as IdentifiedPod).map((container) => ({
    ...containerView(pod, container),
    probes: probes.filter((probe) => probe.container === container.container.name).map(probeView),
    usage: sampler?.containerHistory(uid, container.container.name) ?? [],
  }));
  return {
    row: podRow(pod, ledger),
    now: clock.now(),
    node: facts.name,
    qos: pod.status?.qosClass ?? qosClassOf(pod as IdentifiedPod),
    pulls: await pullsOf(uid, ports, signal),
    advice: ledger?.blocker && adviceFor(ledger.blocker.reason),
    ending: pod.metadata?.deletionTimestamp === undefined ? undefined : endingOf(pod, ledger),
    steps: ledger?.entries ?? [],
    dropped: ledger?.dropped ?? 0,
    containers,
    volumes: await volumeViews(pod, ports, signal),
    conditions: (pod.status?.conditions ?? []).map(conditionView),
    events: events()
      .filter((event) => event.uid === uid)
      .slice(-mostEvents)
      .reverse(),
    usage: sampler?.podHistory(uid) ?? [],
    usageSince: sampler?.since,
  };
}

async function pullsOf(uid: string, ports: DashboardPorts, signal: AbortSignal): Promise<PodDetails["pulls"]> {
  const named = podNames(ports.pods);
  const pulls = await lookAtPulls(ports, signal);
  return pulls.filter(({ podUids }) => podUids.includes(uid)).map((pull) => pullShown(pull, named));
}

export function podOf(uid: string, { pods }: Pick<DashboardPorts, "pods">): Pod | undefined {
  return pods.all().find(({ metadata }) => metadata?.uid === uid);
}

function containerView(pod: Pod, { kind, container }: PodContainer): Omit<ContainerDetails, "probes" | "usage"> {
  const status = statusOf(pod, container.name);
  const limits = amountsOf(container.resources?.limits);
  const ended = status?.lastState?.terminated;
  return {
    name: container.name,
    kind,
    image: container.image ?? "",
    ...stateOf(status),
    ready: status?.ready ?? false,
    restarts: status?.restartCount ?? 0,
    lastExit: ended && exitOf(ended),
    requests: textsOf(container.resources?.requests),
    limits: textsOf(container.resources?.limits),
    cpuLimit: wholeOf(limits.get("cpu")),
    memoryLimit: wholeOf(limits.get("memory")),
  };
}

function textsOf(amounts: Readonly<Record<string, unknown>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts ?? {}).map(([name, amount]) => [name, String(amount)]));
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  return [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ].find((each) => each.name === name);
}

function stateOf(status: ContainerStatus | undefined): Pick<ContainerDetails, "state" | "tone" | "message" | "since"> {
  const { running, terminated, waiting }: ContainerState = status?.state ?? {};
  if (running !== undefined) {
    const tone: Tone = status?.ready === true ? "good" : "busy";
    return { state: "Running", tone, message: "", since: timeOf(running.startedAt) };
  }
  if (terminated !== undefined) {
    const isWell = terminated.exitCode === 0;
    const message = terminated.message ?? "";
    const state = isWell ? "Completed" : exitText(terminated);
    return { state, tone: isWell ? "over" : "bad", message, since: timeOf(terminated.finishedAt) };
  }
  const reason = waiting?.reason ?? "Waiting";
  const tone: Tone = /BackOff|Err|Error|Invalid/.test(reason) ? "bad" : "busy";
  return { state: reason, tone, message: waiting?.message ?? "", since: undefined };
}

function exitOf(ended: ContainerStateTerminated): ExitView {
  const { exitCode, reason = "", message = "", finishedAt } = ended;
  return {
    code: exitCode,
    signal: signalName(ended.signal !== undefined && ended.signal > 0 ? ended.signal : exitCode - 128),
    reason,
    message,
    outOfMemory: reason === "OOMKilled",
    at: timeOf(finishedAt),
  };
}

function signalName(number: number): string | undefined {
  return Object.entries(constants.signals).find(([, each]) => each === number)?.[0];
}
