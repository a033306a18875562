import { dueVersion, refusalOf } from "./decide.ts";
import type { ReportedVersion, RolloutReport } from "./ports.ts";
import type { RolloutRecord } from "./rollout-record.ts";
import type { VersionId } from "./version.ts";

interface Present {
  readonly active: VersionId;
  readonly wanted: VersionId;
  /** Why what is wanted can't even be tried; empty when nothing is in the way. */
  readonly problem: string;
  readonly isFollowed: boolean;
  readonly elapsedMs: number;
  readonly missing: string | undefined;
}

export function reportOf(record: RolloutRecord, present: Present): RolloutReport {
  const { good, trial, refused, history, assigned } = record.state;
  const { active, wanted } = present;
  const shown = (version: VersionId): ReportedVersion => ({ version, source: record.sourceOf(version) });
  const refusal = refusalOf(record.state, dueVersion(record.state, wanted));
  return {
    active: shown(active),
    wanted: shown(wanted),
    assigned: assigned && shown(assigned.version),
    good: good && shown(good.version),
    error: present.problem || (refusal === undefined || refusal.version === active ? "" : errorOf(refusal)),
    trial: trial && { ...trial, remainingMs: Math.max(0, trial.forMs - present.elapsedMs) },
    missing: present.missing,
    isFollowed: present.isFollowed,
    refused,
    history,
  };
}

function errorOf({ kind, why }: { readonly kind: string; readonly why: string }): string {
  if (kind === "while running") return `not taken while running: ${why}`;
  return kind === "invalid" ? `failed to validate config: ${why}` : `rolled back: ${why}`;
}
