import { CpuSet } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";

/** Who has which CPUs. CPUs of init containers may be named again for others of the same pod. */
export interface CpuState {
  /** What all who have none of their own share. */
  readonly shared: CpuSet;
  readonly exclusive: ReadonlyMap<PodUid, ReadonlyMap<string, CpuSet>>;
}

/** All CPUs that any container of the pod has for itself. */
export function cpusOfPod(state: CpuState, uid: PodUid): CpuSet {
  return [...(state.exclusive.get(uid)?.values() ?? [])].reduce((sum, cpus) => sum.with(cpus), CpuSet.none);
}

export function allExclusive(state: CpuState): CpuSet {
  return [...state.exclusive.keys()].reduce((sum, uid) => sum.with(cpusOfPod(state, uid)), CpuSet.none);
}

export function withContainer(state: CpuState, uid: PodUid, container: string, cpus: CpuSet): CpuState {
  const own = new Map(state.exclusive.get(uid)).set(container, cpus);
  return { shared: state.shared.without(cpus), exclusive: new Map(state.exclusive).set(uid, own) };
}

/** Nothing of the pod runs any more: its CPUs are for all again. */
export function withoutPod(state: CpuState, uid: PodUid): CpuState {
  if (!state.exclusive.has(uid)) return state;
  const exclusive = new Map(state.exclusive);
  exclusive.delete(uid);
  return { shared: state.shared.with(cpusOfPod(state, uid)), exclusive };
}
