import { CpuSet, messageOf } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { FindRunning, RunningContainers } from "../running-containers.ts";
import { type CpuFile, decodeCpuFile } from "./cpu-file.ts";
import type { CpuSettings } from "./cpu-settings.ts";
import { allExclusive, type CpuState, withContainer } from "./cpu-state.ts";

export interface RestoredCpus {
  readonly state: CpuState;
  /** Why what was kept could not be used as it was; undefined: it could. */
  readonly mended: string | undefined;
}

/** What was kept does not fit, and somebody who runs would lose CPUs over it: the message is for the operator. */
class CpuRestoreError extends Error {
  override readonly name = "CpuRestoreError";
}

export interface CpuRestorer {
  /** Where the file is, for people. */
  readonly path: string;
  readonly allCpus: CpuSet;
  /** Undefined: the policy is "none", and nobody has CPUs of his own. */
  readonly settings: CpuSettings | undefined;
  readonly findRunning: FindRunning;
}

/**
 * Who has which CPUs, from what an earlier run of this agent, or of another, has left. Where that does not fit the
 * machine or the configuration any more, what nobody uses is let go. Throws CpuRestoreError when somebody uses it.
 */
export async function restoreCpus(text: string | undefined, restorer: CpuRestorer): Promise<RestoredCpus> {
  const fresh = freshState(restorer);
  if (text === undefined) return { state: fresh, mended: undefined };
  let file: CpuFile;
  try {
    file = decodeCpuFile(text);
  } catch (error) {
    const cause = messageOf(error);
    // Nobody can tell any more who has what, so nobody may be there who has something.
    if ((await restorer.findRunning()).areAny) throw refusal(atCheckpoint(cause, restorer));
    return { state: fresh, mended: cause };
  }
  if (file.byContainerId.size > 0) file = await migrated(file, restorer);
  const problem = problemOf(file, restorer);
  if (problem === undefined) {
    const isNew = restorer.settings === undefined || (file.state.shared.isEmpty && file.state.exclusive.size === 0);
    return { state: isNew ? fresh : file.state, mended: undefined };
  }
  return { state: await mend(file.state, problem, restorer), mended: problem };
}

function freshState({ allCpus, settings }: CpuRestorer): CpuState {
  if (settings === undefined) return { shared: CpuSet.none, exclusive: new Map() };
  const { options, reserved } = settings;
  return { shared: options.strictReservation ? allCpus.without(reserved) : allCpus, exclusive: new Map() };
}

/** Containers that are not there any more need nothing. */
async function migrated({ policy, state, byContainerId }: CpuFile, { findRunning }: CpuRestorer): Promise<CpuFile> {
  const running = await findRunning();
  let next = state;
  for (const [id, cpus] of byContainerId) {
    const owner = running.ownerOf(id);
    if (owner === undefined) next = { ...next, shared: next.shared.with(cpus) };
    else next = { ...withContainer(next, owner.uid, owner.container, cpus), shared: next.shared };
  }
  return { policy, state: next, byContainerId: new Map() };
}

/** As the kubelet words it. */
function problemOf({ policy, state }: CpuFile, restorer: CpuRestorer): string | undefined {
  const { allCpus, settings } = restorer;
  const configured = settings === undefined ? "none" : "static";
  if (policy !== configured) {
    const cause = `configured policy "${configured}" differs from state checkpoint policy ${JSON.stringify(policy)}`;
    return atCheckpoint(cause, restorer);
  }
  if (settings === undefined) return undefined;
  const { shared, exclusive } = state;
  const { reserved, options } = settings;
  const given = allExclusive(state);
  const expected = options.strictReservation ? allCpus.without(reserved) : allCpus;
  if (shared.isEmpty && exclusive.size === 0) return undefined;
  // With a strict reservation everything may be given away; whoever shares then runs on the reserved CPUs.
  if (shared.isEmpty && !(options.strictReservation && given.equals(expected))) return "default cpuset cannot be empty";
  const common = reserved.and(shared);
  if (options.strictReservation && !common.isEmpty) {
    return `some of strictly reserved cpus: "${common}" are present in defaultCpuSet: "${shared}"`;
  }
  if (!options.strictReservation && !reserved.isWithin(shared)) {
    return `not all reserved cpus: "${reserved}" are present in defaultCpuSet: "${shared}"`;
  }
  for (const [uid, containers] of exclusive) {
    for (const [name, cpus] of containers) {
      if (cpus.sizeOfCommon(shared) > 0) {
        return `pod: ${uid}, container: ${name} cpuset: "${cpus}" overlaps with default cpuset "${shared}"`;
      }
    }
  }
  const known = shared.with(given);
  if (!known.equals(expected)) {
    return `current set of available CPUs "${expected}" doesn't match with CPUs in state "${known}"`;
  }
  return undefined;
}

/** Keeps what may still be kept. */
async function mend(state: CpuState, problem: string, restorer: CpuRestorer): Promise<CpuState> {
  const { allCpus, settings, findRunning } = restorer;
  let next = freshState(restorer);
  if (state.exclusive.size === 0) return next;
  const givable = settings === undefined ? CpuSet.none : allCpus.without(settings.reserved);
  const running: RunningContainers = await findRunning();
  const takenByOthers = (uid: PodUid): CpuSet =>
    [...next.exclusive].reduce(
      (sum, [other, sets]) => (other === uid ? sum : [...sets.values()].reduce((own, cpus) => own.with(cpus), sum)),
      CpuSet.none,
    );
  const entries = [...state.exclusive].flatMap(([uid, containers]) =>
    [...containers].map(([name, cpus]) => ({ uid, name, cpus, isRunning: running.has(uid, name) })),
  );
  // Whoever runs comes first where two have the same.
  for (const { uid, name, cpus, isRunning } of entries.sort((a, b) => Number(b.isRunning) - Number(a.isRunning))) {
    const mayKeep = !cpus.isEmpty && cpus.isWithin(givable) && cpus.sizeOfCommon(takenByOthers(uid)) === 0;
    if (mayKeep) next = withContainer(next, uid, name, cpus);
    else if (isRunning) throw refusal(problem);
  }
  return next;
}

function atCheckpoint(cause: string, { path }: CpuRestorer): string {
  const advice = `please drain this node and delete the CPU manager checkpoint file "${path}" before restarting Kubelet`;
  return `could not restore state from checkpoint: ${cause}, ${advice}`;
}

function refusal(problem: string): CpuRestoreError {
  return new CpuRestoreError(`start cpu manager error: ${problem}`);
}
