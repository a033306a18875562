/** What one attempt of a probe found. */
export type ProbeOutcome =
  | { readonly type: "success" }
  /** Counts as a success, but its user should know something. */
  | { readonly type: "warning"; readonly output: string }
  | { readonly type: "failure"; readonly output: string }
  /** The probe could not be carried out: says nothing about the container. `state` is what the event names. */
  | { readonly type: "error"; readonly state: "unknown" | "failure"; readonly message: string };

/** Bytes of output or body that a probe looks at; the rest is ignored. */
export const outputLimitBytes = 10 * 1024;

/** What people are shown of a text that may be as long as a pod's spec: events and histories keep it. */
export function clip(text: string): string {
  return text.length <= outputLimitBytes ? text : `${text.slice(0, outputLimitBytes)}...`;
}
