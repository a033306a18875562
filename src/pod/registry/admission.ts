import { messageOf } from "../../ground/base/index.ts";
import type { IdentifiedPod, RejectionReason } from "../../ground/model/index.ts";

/** Whether this node takes a pod. The first handler that refuses, or can't tell yet, decides. */
export class Admission {
  readonly #handlers: Readonly<Record<string, AdmissionHandler>>;

  /** In the order in which they are asked; people are told their names. */
  constructor(handlers: Readonly<Record<string, AdmissionHandler>>) {
    this.#handlers = handlers;
  }

  admit(pod: IdentifiedPod, others: readonly IdentifiedPod[]): AdmissionVerdict {
    let preempts: Preemption | undefined;
    const given: (() => void)[] = [];
    let isTaken = false;
    try {
      for (const handler of Object.values(this.#handlers)) {
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

  /** The verdict, and all that is said against the pod, of which the first decides. For handlers that are on trial. */
  judge(pod: IdentifiedPod, others: readonly IdentifiedPod[]): Judged {
    const verdict = verdictOr(() => this.admit(pod, others));
    if (verdict.type === "admitted") return { verdict, objections: [] };
    const objections = Object.entries(this.#handlers).flatMap(([handler, ask]): readonly Objection[] => {
      const said = verdictOr(() => ask(pod, others));
      return said.type === "admitted" ? [] : [{ handler, verdict: said }];
    });
    return { verdict, objections };
  }
}

/** A pod so odd that a handler can't cope with it is refused. */
export function verdictOr(
  decide: () => AdmissionVerdict,
  onDefect: (error: unknown) => void = () => {},
): AdmissionVerdict {
  try {
    return decide();
  } catch (error) {
    onDefect(error);
    return { type: "rejected", reason: "UnexpectedAdmissionError", message: messageOf(error) };
  }
}

export interface Judged {
  readonly verdict: AdmissionVerdict;
  readonly objections: readonly Objection[];
}

/** What one handler says against a pod. */
export interface Objection {
  readonly handler: string;
  readonly verdict: Exclude<AdmissionVerdict, { type: "admitted" }>;
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

export const admitted: AdmissionVerdict = { type: "admitted" };

export function rejected(reason: RejectionReason, message: string): AdmissionVerdict {
  return { type: "rejected", reason, message };
}

export type AdmissionHandler = (pod: IdentifiedPod, others: readonly IdentifiedPod[]) => AdmissionVerdict;

/** Pods that have to go first, because there is not enough of a resource. */
export interface Preemption {
  readonly victims: readonly IdentifiedPod[];
  readonly resource: string;
}
