/** What a check came to, the worst first. */
export const states = ["fail", "unknown", "warn", "manual", "pass", "n/a"] as const;

/**
 * `fail`: wrong, and worth mending. `warn`: works, but look at it. `manual`: only a person can judge it. `n/a`: the
 * question makes no sense here. `unknown`: it could not be found out, and `seen` says why.
 */
export type State = (typeof states)[number];

/** A place in a file of this machine. */
export interface FilePlace {
  readonly file: string;
  readonly line?: number;
}

/** What one check found. Fields are only ever added. */
export interface DoctorFinding {
  /** The number in the CIS benchmark, or `group.name`. */
  readonly id: string;
  readonly group: string;
  readonly title: string;
  readonly state: State;
  readonly seen: string;
  /** Where what was seen comes from: a flag, a file with its line, a drop-in, a default; empty where that is no question. */
  readonly from: string;
  readonly place?: FilePlace;
  readonly why: string;
  /** The exact command or line that mends it; empty where nothing is to be mended. */
  readonly fix: string;
  /** For rows of the CIS benchmark: whether it asks a machine or a person. */
  readonly benchmark?: "automated" | "manual";
}

/** The answer of `nodelet doctor --json`, and what the dashboard shows. Fields are only ever added. */
export interface DoctorReport {
  readonly apiVersion: "nodelet.dev/v1";
  readonly kind: "DoctorReport";
  readonly node: string;
  /** When it was begun, as RFC 3339. */
  readonly at: string;
  readonly tookMs: number;
  /** Whose configuration was examined, in words. */
  readonly subject: string;
  readonly agent: AgentPresence;
  readonly summary: Readonly<Record<State, number>>;
  /** In the order of the groups. */
  readonly findings: readonly DoctorFinding[];
  /** Where it was asked for that the Node be told. */
  readonly nodeConditions?: ConditionsWritten;
}

/** What the Node's conditions say now, or why they could not be written. */
export type ConditionsWritten =
  | { readonly written: readonly { readonly type: string; readonly status: string }[] }
  | { readonly problem: string };

/** Whether an agent runs here. `silent`: it holds the socket but does not answer. `older`: it has no such view yet. */
export interface AgentPresence {
  readonly state: "running" | "absent" | "silent" | "older";
  readonly socket: string;
  readonly version?: string;
}

export function countStates(findings: readonly DoctorFinding[]): Readonly<Record<State, number>> {
  const summary = { fail: 0, unknown: 0, warn: 0, manual: 0, pass: 0, "n/a": 0 };
  for (const { state } of findings) summary[state]++;
  return summary;
}

/** Failures first; within a state the order of the groups stays. */
export function worstFirst(findings: readonly DoctorFinding[]): readonly DoctorFinding[] {
  return [...findings].sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state));
}
