import type { Ledger, SpanStart } from "../base/index.ts";
import type { PodUid } from "./ids.ts";

/** The steps of a pod's life, as its ledger records them; `nodelet why` and `nodelet blame` print them. */
export type PodStep =
  | "seen"
  | "admitted"
  | "cgroup"
  | "volumes"
  | "claims"
  | "sandbox"
  | "pull"
  | "create"
  | "start"
  | "hook"
  | "probe"
  | "running"
  | "ready"
  | "exit"
  | "status"
  | "kill"
  | "stop"
  | "cleanup"
  | "gone";

/** The history of every pod. A step is about a container, an image or a probe, or about the whole pod. */
export type PodLedger = Ledger<PodUid, PodStep>;

/** A step of a pod's life as a span of a trace. */
export function stepSpan(uid: PodUid, step: PodStep, subject: string): SpanStart {
  const about = subjectAttribute(step);
  return {
    name: step,
    attributes: {
      "k8s.pod.uid": uid,
      ...(about !== undefined && subject !== "" && { [about]: subject }),
    },
  };
}

/** What the subject of a step is, in the words of those who look at traces. */
function subjectAttribute(step: PodStep): string | undefined {
  switch (step) {
    case "pull":
      return "container.image.name";
    case "create":
    case "start":
    case "kill":
    case "hook":
    case "probe":
      return "k8s.container.name";
    case "volumes":
      return "k8s.volume.name";
    default:
      return "nodelet.subject";
  }
}
