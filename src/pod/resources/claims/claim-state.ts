import type { PreparedDevice } from "../../../connections/plugins/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";

/** A claim that pods of this node use, or that was prepared for some: all that is needed to give it back. */
export interface ClaimRecord {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly pods: ReadonlySet<PodUid>;
  /** Every driver that has a part in it, with the devices it described; none where it has yet to. */
  readonly drivers: ReadonlyMap<string, readonly PreparedDevice[]>;
}

/** By `claimKey`. */
export type ClaimState = ReadonlyMap<string, ClaimRecord>;

export function claimKey({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function withClaim(state: ClaimState, record: ClaimRecord): ClaimState {
  return new Map(state).set(claimKey(record), record);
}

export function withoutClaim(state: ClaimState, key: string): ClaimState {
  const next = new Map(state);
  next.delete(key);
  return next;
}

/** The pod uses the claim, too. What its drivers have said of it stays. */
export function withUser(state: ClaimState, claim: Omit<ClaimRecord, "pods">, pod: PodUid): ClaimState {
  const known = state.get(claimKey(claim));
  return withClaim(state, {
    ...claim,
    pods: new Set([...(known?.pods ?? []), pod]),
    drivers: new Map([...claim.drivers, ...(known?.drivers ?? [])]),
  });
}

export function withoutUser(state: ClaimState, key: string, pod: PodUid): ClaimState {
  const known = state.get(key);
  if (known === undefined) return state;
  return withClaim(state, { ...known, pods: new Set([...known.pods].filter((uid) => uid !== pod)) });
}

/** In place of what the driver said before: a claim that is prepared again must not have its devices twice. */
export function withDevices(
  state: ClaimState,
  key: string,
  driver: string,
  devices: readonly PreparedDevice[],
): ClaimState {
  const known = state.get(key);
  if (known === undefined) return state;
  return withClaim(state, { ...known, drivers: new Map(known.drivers).set(driver, devices) });
}

export function claimsOfPod(state: ClaimState, pod: PodUid): readonly ClaimRecord[] {
  return [...state.values()].filter(({ pods }) => pods.has(pod));
}

export const noClaims: ClaimState = new Map();
