/** One setting that another configuration changes. */
export interface ChangeRow {
  readonly name: string;
  readonly from?: unknown;
  readonly to?: unknown;
  /** In words. */
  readonly when: string;
}

/** What the agent says about its configurations. */
export interface RolloutAnswer {
  readonly active: AnsweredVersion;
  readonly good?: AnsweredVersion;
  readonly error: string;
  readonly trial?: { readonly version: string; readonly remainingMs: number; readonly mustBeKept: boolean };
  /** What does not work at this moment, of what must. */
  readonly missing?: string;
  readonly isFollowed: boolean;
  readonly refused: readonly { readonly version: string; readonly why: string }[];
  readonly history: readonly {
    readonly at: number;
    readonly version: string;
    readonly source: string;
    readonly what: string;
    readonly why: string;
  }[];
}

interface AnsweredVersion {
  readonly version: string;
}

export type TrialProgress =
  | { readonly is: "works"; readonly remainingMs: number }
  | { readonly is: "kept" }
  | { readonly is: "under way" | "over"; readonly why: string };

/** What has become of a trial. `hasBegun`: the agent was seen to try it. */
export function trialProgress(version: string, report: RolloutAnswer | undefined, hasBegun: boolean): TrialProgress {
  if (report === undefined) return { is: "under way", why: "the agent does not answer" };
  const { trial, active, missing, refused } = report;
  const refusal = refused.find((each) => each.version === version);
  if (refusal !== undefined) return { is: "over", why: `it was taken back: ${refusal.why}` };
  if (trial?.version !== version) {
    if (hasBegun && active.version === version) return { is: "kept" };
    return hasBegun
      ? { is: "over", why: "it had to make way: the files, or whoever else may say so, want something else by now" }
      : { is: "under way", why: "it has not begun" };
  }
  if (active.version !== version || missing !== undefined) {
    return { is: "under way", why: missing ?? "the agent is restarting" };
  }
  return { is: "works", remainingMs: trial.remainingMs };
}

export function changesText(changes: readonly ChangeRow[]): string {
  if (changes.length === 0) return "Nothing would change.\n";
  return changes
    .map(({ name, from, to, when }) => `${name}: ${shown(from)} -> ${shown(to)}\n    ${when}${stops(name)}\n`)
    .join("");
}

/** Settings that pods may end with. */
const stopping: ReadonlyMap<string, string> = new Map([
  ["staticPodPath", "pods whose manifests are only in the old place are stopped"],
  ["staticPodURL", "pods that only the old address names are stopped"],
]);

function stops(name: string): string {
  const text = stopping.get(name);
  return text === undefined ? "" : `; ${text}`;
}

export function historyText({ active, good, trial, error, isFollowed, history }: RolloutAnswer): string {
  const notes = [
    `in use: ${active.version}${good?.version === active.version ? ", known to be good" : ""}`,
    ...(good === undefined || good.version === active.version ? [] : [`known to be good: ${good.version}`]),
    ...(trial === undefined ? [] : [trialText(trial)]),
    ...(error === "" ? [] : [`not in use: what is wanted; ${error}`]),
    isFollowed
      ? "changes of the files are followed"
      : "the files are read once, at the start (no --dynamic-config-dir)",
  ];
  const lines = history.map(
    ({ at, version, source, what, why }) =>
      `${new Date(at).toISOString()}  ${version}  ${what.padEnd(11)}  ${source}: ${why}`,
  );
  return `${[...notes, ...lines].join("\n")}\n`;
}

function trialText({ version, remainingMs, mustBeKept }: NonNullable<RolloutAnswer["trial"]>): string {
  const end = mustBeKept ? "it goes back" : "it counts as good";
  return `being tried: ${version}; ${end} in ${Math.round(remainingMs / 1000)} s`;
}

function shown(value: unknown): string {
  return value === undefined ? "(not set)" : JSON.stringify(value);
}
