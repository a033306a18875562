import { complaintAbout, type InvalidConfig } from "../../ground/config/index.ts";
import type { ConfigChanges } from "./changes.ts";
import * as decide from "./decide.ts";
import type { LoadedVersion } from "./running.ts";
import type { ConfigVersion, VersionId } from "./version.ts";

export type TurnStart =
  | ({ readonly kind: "turn"; readonly isTrial: boolean } & LoadedVersion)
  | { readonly kind: "invalid"; readonly loaded: InvalidConfig };

/** Finds what the next turn of the agent begins with, and notes that it does. */
export async function beginTurn(changes: ConfigChanges, isProcessStart: boolean): Promise<TurnStart> {
  const { record, running } = changes;
  const failed = new Map<VersionId, InvalidConfig>();
  const take = (found: LoadedVersion, isTrial: boolean): TurnStart => {
    running.become(found);
    return { kind: "turn", ...found, isTrial };
  };
  for (let isFirst = isProcessStart; ; isFirst = false) {
    const { trial } = changes.state;
    const { state, use, isTrial } = changes.choose(isFirst);
    const known = failed.get(use);
    if (known !== undefined) return { kind: "invalid", loaded: known };
    record.state = state;
    if (trial !== undefined && trial.version !== state.trial?.version) changes.tellRollBack(trial.version);
    const found = await changes.loader.load(use);
    if ("invalid" in found) {
      failed.set(use, found.invalid);
      giveUp(changes, use, found);
      continue;
    }
    if (isTrial && trial?.version !== use) record.note(use, "trial", "the agent was started with it");
    record.state = decide.forgetKept(changes.state, use, changes.wanted);
    if (!isTrial) {
      await record.saveQuietly();
      return take(found, false);
    }
    const safe = await unlessSecured(changes, found.version);
    if (safe !== "next") return safe === undefined ? take(found, true) : take(safe, false);
  }
}

function giveUp(
  { record, ports }: ConfigChanges,
  version: VersionId,
  { invalid, isLost }: { readonly invalid: InvalidConfig; readonly isLost: boolean },
): void {
  ports.log.error("A configuration can't be used", complaintAbout(invalid), { version });
  record.state = isLost
    ? decide.lose(record.state, version)
    : decide.giveUp(record.state, version, invalid.message, ports.clock.now());
  record.note(version, isLost ? "lost" : "refused", invalid.message);
}

/** What can't be saved is not tried where there is anything better: a crash would find nothing of it. */
async function unlessSecured(
  changes: ConfigChanges,
  version: ConfigVersion,
): Promise<LoadedVersion | "next" | undefined> {
  const { record, ports, loader } = changes;
  try {
    await record.secure(version);
    changes.unsaved = undefined;
    return undefined;
  } catch (error) {
    const why = changes.cantSave(version, error);
    if (changes.state.trial?.mustBeKept === true) {
      changes.unsaved = undefined;
      record.state = decide.rollBack(changes.state, { kind: "not kept", why, now: ports.clock.now() });
      changes.tellRollBack(version.id);
      return "next";
    }
    const safe = await loader.knownGood();
    if (safe !== undefined) record.state = { ...changes.state, trial: undefined };
    return safe;
  }
}
