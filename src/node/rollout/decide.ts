import type { HistoryEntry, RefusalKind, RefusedVersion, RolloutState, Trial } from "./state.ts";
import type { VersionId } from "./version.ts";

const mostRefusals = 32;
const mostHistory = 50;
const longestWhy = 1_000;
/** A process that has begun so often with a configuration without ending in good order is not given it again. */
const mostStarts = 3;
const mostChances = 2;
const longestPatienceMs = 120_000;

/** What happens to whom, and why; in the order in which it happens. */
export interface Choice {
  readonly state: RolloutState;
  readonly use: VersionId;
  readonly isTrial: boolean;
}

export interface Wanted {
  /** What the files or the config map say. */
  readonly version: VersionId;
  /** Whether changes are followed: without that only trials by hand are known here, and files count as they are. */
  readonly isFollowed: boolean;
  readonly trialMs: number;
}

/** Which configuration a turn of the agent begins with. */
export function chooseVersion(
  before: RolloutState,
  wanted: Wanted,
  turn: { readonly isProcessStart: boolean; readonly now: number },
): Choice {
  const state = turn.isProcessStart ? afterProcessStart(before, turn.now) : before;
  const { trial, good } = state;
  const target = dueVersion(state, wanted.version);
  if (trial !== undefined && (trial.mustBeKept || trial.version === target)) {
    return { state: { ...state, trial: { ...trial, starts: trial.starts + 1 } }, use: trial.version, isTrial: true };
  }
  const settled = { ...state, trial: undefined };
  if (good?.version === target || !(wanted.isFollowed || isKept(state, target))) {
    return { state: settled, use: target, isTrial: false };
  }
  if (good !== undefined && refusalOf(state, target) !== undefined) {
    return { state: settled, use: good.version, isTrial: false };
  }
  const begun = beginTrial(settled, target, { ...turn, forMs: wanted.trialMs, mustBeKept: false, effect: "at once" });
  return { state: begun, use: target, isTrial: true };
}

/** What would be used if nothing were wrong with it. */
export function dueVersion({ kept }: RolloutState, wanted: VersionId): VersionId {
  return kept?.insteadOf === wanted ? kept.version : wanted;
}

/** What was kept in place of something else is over once the files, or the config map, have had their say again. */
export function forgetKept(state: RolloutState, use: VersionId, wanted: VersionId): RolloutState {
  return state.kept !== undefined && use === wanted ? { ...state, kept: undefined } : state;
}

export function refusalOf(state: RolloutState, version: VersionId): RefusedVersion | undefined {
  return state.refused.find((refusal) => refusal.version === version);
}

function isKept({ kept }: RolloutState, version: VersionId): boolean {
  return kept?.version === version;
}

/** Refusals by what the process was: another one may have other flags, or be of another release. */
const endsWithProcess: ReadonlySet<RefusalKind> = new Set(["while running", "invalid"]);

/** Whether another look may find otherwise: nothing was tried, and what was in the way may be gone. */
export function mayBeOver({ kind }: RefusedVersion): boolean {
  return endsWithProcess.has(kind);
}

/** A trial by hand ends with the process. One that is followed goes on, unless the process keeps dying of it. */
function afterProcessStart(before: RolloutState, now: number): RolloutState {
  const state = { ...before, refused: before.refused.filter(({ kind }) => !endsWithProcess.has(kind)) };
  const { trial } = state;
  if (trial === undefined) return state;
  if (trial.mustBeKept) {
    const why =
      trial.starts > 0 ? "the agent's process ended during the trial" : "the agent was stopped during the trial";
    return rollBack(state, { kind: "not kept", why, now });
  }
  if (trial.starts < mostStarts || state.good === undefined) return state;
  const why = `the agent's process ended ${trial.starts} times during the trial without having been asked to`;
  return rollBack(state, { kind: "crashed", why, now });
}

export interface TrialStart {
  readonly now: number;
  readonly forMs: number;
  readonly mustBeKept: boolean;
  /** Those of the good one unless given. */
  readonly needs?: readonly string[];
  readonly effect: "at once" | "restart";
}

export function beginTrial(
  state: RolloutState,
  version: VersionId,
  { now, forMs, mustBeKept, needs, effect }: TrialStart,
): RolloutState {
  const trial: Trial = {
    version,
    begunAt: now,
    forMs,
    // The process that is running is the first one of a trial without a restart.
    starts: effect === "at once" ? 1 : 0,
    needs: needs ?? state.good?.needs ?? [],
    mustBeKept,
  };
  return { ...state, trial, refused: state.refused.filter((refusal) => refusal.version !== version) };
}

/** The process is about to end because it was asked to: that is no crash. */
export function endInOrder(state: RolloutState): RolloutState {
  return state.trial === undefined ? state : { ...state, trial: { ...state.trial, starts: 0 } };
}

/** Whether there is anything to go back to from the trial. */
export function canRollBack({ trial, good }: RolloutState): boolean {
  return trial !== undefined && (trial.mustBeKept || (good !== undefined && good.version !== trial.version));
}

export function rollBack(
  state: RolloutState,
  { kind, why, now }: { readonly kind: RefusalKind; readonly why: string; readonly now: number },
): RolloutState {
  const { trial } = state;
  if (trial === undefined) return state;
  return { ...refuseVersion(state, { version: trial.version, kind, why, now }), trial: undefined };
}

export function refuseVersion(
  state: RolloutState,
  { version, kind, why, now }: { version: VersionId; kind: RefusalKind; why: string; now: number },
): RolloutState {
  const chances = refusalOf(state, version)?.chances ?? 0;
  const doubt = kind === "harmful" ? "open" : "none";
  const refusal: RefusedVersion = { version, kind, why: why.slice(0, longestWhy), at: now, doubt, chances };
  const others = state.refused.filter((each) => each.version !== version);
  return { ...state, refused: [...others, refusal].slice(-mostRefusals) };
}

/** What was found of one version is true of another one, which says the same. */
export function passOnRefusal(state: RolloutState, from: VersionId, to: VersionId): RolloutState {
  return {
    ...state,
    refused: state.refused.map((refusal) => (refusal.version === from ? { ...refusal, version: to } : refusal)),
  };
}

/** The version can't be loaded: whatever it was chosen for, it is not that any more. */
export function giveUp(state: RolloutState, version: VersionId, why: string, now: number): RolloutState {
  const tried = state.trial?.version === version ? rollBack(state, { kind: "invalid", why, now }) : state;
  const good = tried.good?.version === version ? undefined : tried.good;
  // Where nothing is known to be good, the files are better than what can't be used.
  const isAssigned = tried.assigned?.version === version && good === undefined;
  return {
    ...refuseVersion(tried, { version, kind: "invalid", why, now }),
    kept: tried.kept?.version === version ? undefined : tried.kept,
    assigned: isAssigned ? undefined : tried.assigned,
    good,
  };
}

/** The version is gone from the disk: nothing names it any more, and whoever wants it has to bring it again. */
export function lose(state: RolloutState, version: VersionId): RolloutState {
  const unlessLost = <Named extends { readonly version: VersionId }>(named: Named | undefined): Named | undefined =>
    named?.version === version ? undefined : named;
  const { good, kept, trial, assigned } = state;
  return {
    ...state,
    good: unlessLost(good),
    kept: unlessLost(kept),
    trial: unlessLost(trial),
    assigned: unlessLost(assigned),
  };
}

/** The configuration in use has shown that it works: from now on others are measured by it. */
export function becomeGood(state: RolloutState, version: VersionId, needs: readonly string[]): RolloutState {
  const trial = state.trial?.version === version ? undefined : state.trial;
  const refused = state.refused.filter((refusal) => refusal.version !== version);
  return { ...state, trial, refused, good: { version, needs } };
}

/**
 * What the last known good one shows about those that were rolled back: if it works at once, they were to blame; if it
 * did not work either and does now, whatever it was is over, and they get another chance.
 */
export function clearDoubts(
  state: RolloutState,
  sign: "works at once" | "does not work" | "works again",
): { readonly state: RolloutState; readonly again: readonly VersionId[] } {
  const again: VersionId[] = [];
  const refused = state.refused.map((refusal): RefusedVersion => {
    if (refusal.doubt === "open" && sign !== "works again") {
      return { ...refusal, doubt: sign === "works at once" ? "none" : "shared" };
    }
    if (refusal.doubt !== "shared" || sign !== "works again") return refusal;
    if (refusal.chances < mostChances) again.push(refusal.version);
    return { ...refusal, doubt: "none", chances: refusal.chances + 1 };
  });
  return { state: { ...state, refused }, again };
}

/** Gives a configuration that was rolled back another chance. */
export function tryAgain(
  state: RolloutState,
  version: VersionId,
  trial: { readonly now: number; readonly forMs: number },
): RolloutState {
  // Its refusal stays, to count the chances it has had; the trial comes before it.
  const begun = beginTrial(state, version, { ...trial, mustBeKept: false, effect: "restart" });
  return { ...begun, refused: state.refused };
}

export function note(state: RolloutState, entry: HistoryEntry): RolloutState {
  const last = state.history.at(-1);
  if (last !== undefined && last.version === entry.version && last.what === entry.what && last.why === entry.why) {
    return state;
  }
  return {
    ...state,
    history: [...state.history, { ...entry, why: entry.why.slice(0, longestWhy) }].slice(-mostHistory),
  };
}

/** How long something that worked before may be missing. */
export function patienceOf({ forMs }: Pick<Trial, "forMs">): number {
  return Math.min(longestPatienceMs, forMs / 2);
}

/** What a look at the agent says about the trial. */
export function judge(
  trial: Trial,
  look: {
    /** Since the trial began. */
    readonly elapsedMs: number;
    /** What is missing, and for how long by now. */
    readonly missing: { readonly what: string; readonly forMs: number } | undefined;
  },
):
  | { readonly verdict: "wait" }
  | { readonly verdict: "good" }
  | { readonly verdict: "back"; readonly kind: RefusalKind; readonly why: string } {
  const { elapsedMs, missing } = look;
  if (missing !== undefined && missing.forMs >= patienceOf(trial)) {
    const why = `${missing.what}, for ${Math.round(missing.forMs / 1000)} s`;
    return { verdict: "back", kind: "harmful", why };
  }
  if (elapsedMs < trial.forMs) return { verdict: "wait" };
  if (trial.mustBeKept) {
    return {
      verdict: "back",
      kind: "not kept",
      why: `nobody said "nodelet config keep" within ${trial.forMs / 1000} s`,
    };
  }
  return missing === undefined ? { verdict: "good" } : { verdict: "wait" };
}
