import type { LedgerView } from "../../../ground/base/index.ts";
import type { Pod } from "../../../ground/model/index.ts";

const advices: readonly (readonly [RegExp, string])[] = [
  [
    /^ErrImageNeverPull$/,
    "The pod may use only images that are on this node already; load it, or let the pod pull it (imagePullPolicy).",
  ],
  [
    /Image|Registry/,
    "Check the image's name and tag, that this node reaches its registry, and the pod's imagePullSecrets.",
  ],
  [
    /^CrashLoopBackOff$/,
    "Read what the container wrote before it ended. It is tried again later and later, up to every 5 minutes.",
  ],
  [
    /^CreateContainerConfigError$/,
    "Something that the container is made from is missing: a config map, a secret, a key of one.",
  ],
  [
    /^(?:CreateContainerError|RunContainerError)$/,
    "The runtime could not make or start it: check its command, user and mounts.",
  ],
  [/Volume|Mount/, "See the volumes below: one of them can't be had yet, and its line says why."],
  [/Sandbox|Network/, "The runtime can't give the pod a network: check its CNI configuration and plugins."],
  [
    /^(?:OutOf|Unexpected|Node|Evict|Preempt)/,
    "The node can't take the pod as it is: see the node's resources and conditions.",
  ],
  [/Claim/, "A driver of the pod's resource claims has not prepared them yet."],
  [/Runtime/, "The container runtime does not answer: look at its service and log."],
];

/** What a person could do about what a pod waits for; undefined: nothing but wait. */
export function adviceFor(reason: string): string | undefined {
  return advices.find(([pattern]) => pattern.test(reason))?.[1];
}

/** What goes on while a pod ends, in words. */
export function endingOf({ status }: Pod, ledger: LedgerView | undefined): string | undefined {
  const step = ledger?.entries.findLast(({ outcome }) => outcome === "running");
  const running = (status?.containerStatuses ?? []).filter(({ state }) => state?.running !== undefined);
  const still =
    running.length === 0 ? "no container runs any more" : `${running.map(({ name }) => name).join(", ")} still runs`;
  return step === undefined ? still : `${step.step} ${step.subject}`.trim().concat(`, ${still}`);
}
