import type { IdentifiedPod } from "../model/index.ts";

/** Whether this node takes a pod. The first handler that refuses decides. */
export class Admission {
  readonly #handlers: readonly AdmissionHandler[];

  constructor(handlers: readonly AdmissionHandler[]) {
    this.#handlers = handlers;
  }

  admit(pod: IdentifiedPod, others: readonly IdentifiedPod[]): AdmissionVerdict {
    const preempts = new Set<IdentifiedPod>();
    for (const handler of this.#handlers) {
      const verdict = handler(pod, others);
      if (verdict.type === "rejected") return verdict;
      for (const victim of verdict.preempts ?? []) preempts.add(victim);
    }
    return preempts.size === 0 ? { type: "admitted" } : { type: "admitted", preempts: [...preempts] };
  }
}

export type AdmissionVerdict =
  /** `preempts`: those have to go first. */
  | { readonly type: "admitted"; readonly preempts?: readonly IdentifiedPod[] }
  | { readonly type: "rejected"; readonly reason: string; readonly message: string };

export type AdmissionHandler = (pod: IdentifiedPod, others: readonly IdentifiedPod[]) => AdmissionVerdict;
