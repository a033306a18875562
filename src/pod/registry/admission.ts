import type { IdentifiedPod, RejectionReason } from "../../ground/model/index.ts";

/** Whether this node takes a pod. The first handler that refuses, or can't tell yet, decides. */
export class Admission {
  readonly #handlers: readonly AdmissionHandler[];

  constructor(handlers: readonly AdmissionHandler[]) {
    this.#handlers = handlers;
  }

  admit(pod: IdentifiedPod, others: readonly IdentifiedPod[]): AdmissionVerdict {
    let preempts: Preemption | undefined;
    const given: (() => void)[] = [];
    let isTaken = false;
    try {
      for (const handler of this.#handlers) {
        const verdict = handler(pod, others);
        if (verdict.type !== "admitted") return verdict;
        preempts = verdict.preempts ?? preempts;
        if (verdict.takeBack !== undefined) given.push(verdict.takeBack);
      }
      isTaken = true;
    } finally {
      // Who is not taken keeps nothing, or nobody else could have it.
      if (!isTaken) for (const takeBack of given) takeBack();
    }
    return preempts === undefined ? { type: "admitted" } : { type: "admitted", preempts };
  }
}

export type AdmissionVerdict =
  | {
      readonly type: "admitted";
      readonly preempts?: Preemption;
      /** Takes back, at once, what the pod was given by this very verdict. */
      readonly takeBack?: () => void;
    }
  | { readonly type: "rejected"; readonly reason: RejectionReason; readonly message: string }
  /** Something that the verdict rests on is not known yet: the pod waits, and is asked about again. */
  | { readonly type: "undecided"; readonly waitsFor: string };

export type AdmissionHandler = (pod: IdentifiedPod, others: readonly IdentifiedPod[]) => AdmissionVerdict;

/** Pods that have to go first, because there is not enough of a resource. */
export interface Preemption {
  readonly victims: readonly IdentifiedPod[];
  readonly resource: string;
}
