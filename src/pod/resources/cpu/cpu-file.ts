import { CpuSet, messageOf } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import {
  asCheckpointObject,
  type CheckpointObject,
  goChecksum,
  goMap,
  goStruct,
  inGoOrder,
  memberOf,
  textMember,
} from "../go-checkpoint.ts";
import type { CpuState } from "./cpu-state.ts";

/** What `cpu_manager_state` says, in the kubelet's own form: either agent goes on with what the other has left. */
export interface CpuFile {
  readonly policy: string;
  readonly state: CpuState;
  /** What kubelets of long ago wrote: sets by the id of the container. */
  readonly byContainerId: ReadonlyMap<string, CpuSet>;
}

/** The file can't be used; the message is the kubelet's. */
class CpuFileError extends Error {
  override readonly name = "CpuFileError";
}

export function encodeCpuFile(policy: string, { shared, exclusive }: CpuState): string {
  const pods = inGoOrder(exclusive).map(
    ([uid, containers]) =>
      [uid, Object.fromEntries(inGoOrder(containers).map(([name, cpus]) => [name, String(cpus)]))] as const,
  );
  const entries = Object.fromEntries(pods);
  return JSON.stringify({
    policyName: policy,
    defaultCpuSet: String(shared),
    ...(pods.length === 0 ? {} : { entries }),
    checksum: checksumOf(policy, String(shared), nested(entries), "map[string]map[string]string"),
  });
}

export function decodeCpuFile(text: string): CpuFile {
  try {
    return decode(asCheckpointObject(JSON.parse(text), "the file"));
  } catch (error) {
    // What is no JSON at all, or not of this form, has lost its meaning in the same way.
    throw error instanceof CpuFileError ? error : new CpuFileError("checkpoint is corrupted", { cause: error });
  }
}

function decode(file: CheckpointObject): CpuFile {
  const policy = textMember(file, "policyName");
  const shared = textMember(file, "defaultCpuSet");
  const entries = Object.entries(asCheckpointObject(memberOf(file, "entries") ?? {}, "entries"));
  const checksum = memberOf(file, "checksum") ?? 0;
  const isOld = entries.length > 0 && entries.every(([, value]) => typeof value === "string");
  const texts = isOld
    ? goMap(entries.map(([id, cpus]) => [id, String(cpus)]))
    : nested(Object.fromEntries(entries.map(([uid, containers]) => [uid, asCheckpointObject(containers, uid)])));
  const type = isOld ? "map[string]string" : "map[string]map[string]string";
  // Without a checksum a file was written by people, who may.
  if (checksum !== 0 && checksum !== checksumOf(policy, shared, texts, type)) {
    throw new CpuFileError("checkpoint is corrupted");
  }
  const sharedCpus = parsed(shared, (why) => `could not parse default cpu set ${JSON.stringify(shared)}: ${why}`);
  if (isOld) {
    const sets = entries.map(
      ([id, cpus]) => [id, parsed(String(cpus), (why) => oldSetProblem(id, cpus, why))] as const,
    );
    return { policy, state: { shared: sharedCpus, exclusive: new Map() }, byContainerId: new Map(sets) };
  }
  const exclusive = new Map<PodUid, ReadonlyMap<string, CpuSet>>();
  for (const [uid, containers] of entries) {
    const own = Object.entries(asCheckpointObject(containers, uid)).map(([name, cpus]) => {
      const problem = (why: string): string =>
        `could not parse cpuset ${JSON.stringify(cpus)} for container ${JSON.stringify(name)} in pod ${JSON.stringify(uid)}: ${why}`;
      return [name, parsed(String(cpus), problem)] as const;
    });
    exclusive.set(uid as PodUid, new Map(own));
  }
  return { policy, state: { shared: sharedCpus, exclusive }, byContainerId: new Map() };
}

function oldSetProblem(id: string, cpus: unknown, why: string): string {
  return `could not parse cpuset ${JSON.stringify(cpus)} for container id ${JSON.stringify(id)}: ${why}`;
}

function parsed(text: string, problem: (why: string) => string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch (error) {
    throw new CpuFileError(problem(messageOf(error)));
  }
}

function nested(entries: CheckpointObject): string {
  return goMap(
    Object.entries(entries).map(([uid, containers]) => [
      uid,
      goMap(Object.entries(asCheckpointObject(containers, uid)).map(([name, cpus]) => [name, String(cpus)])),
    ]),
  );
}

function checksumOf(policy: string, shared: string, entries: string, entriesType: string): number {
  const value = goStruct({
    PolicyName: ["string", policy],
    DefaultCPUSet: ["string", shared],
    Entries: [entriesType, entries],
    Checksum: ["checksum.Checksum", 0],
  });
  return goChecksum(`(*state.CPUManagerCheckpoint)${value}`);
}
