import type { IdentifiedPod } from "../model/index.ts";

/** Whether this node takes a pod. The first handler that refuses decides. */
export class Admission {
  readonly #handlers: readonly AdmissionHandler[];

  constructor(handlers: readonly AdmissionHandler[]) {
    this.#handlers = handlers;
  }

  admit(pod: IdentifiedPod, others: readonly IdentifiedPod[]): AdmissionVerdict {
    for (const handler of this.#handlers) {
      const verdict = handler(pod, others);
      if (verdict.type === "rejected") return verdict;
    }
    return { type: "admitted" };
  }
}

export type AdmissionVerdict =
  | { readonly type: "admitted" }
  | { readonly type: "rejected"; readonly reason: string; readonly message: string };

export type AdmissionHandler = (pod: IdentifiedPod, others: readonly IdentifiedPod[]) => AdmissionVerdict;
