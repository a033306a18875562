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

// A pod may name thousands of claims: each change is made for all of them at once.

function withClaims(state: ClaimState, records: readonly ClaimRecord[]): ClaimState {
  const next = new Map(state);
  for (const record of records) next.set(claimKey(record), record);
  return next;
}

export function withoutClaims(state: ClaimState, keys: readonly string[]): ClaimState {
  const next = new Map(state);
  for (const key of keys) next.delete(key);
  return next;
}

/** The pod uses the claims, too. What their drivers have said of them stays. */
export function withUser(state: ClaimState, claims: readonly Omit<ClaimRecord, "pods">[], pod: PodUid): ClaimState {
  const records = claims.map((claim) => {
    const known = state.get(claimKey(claim));
    return {
      ...claim,
      pods: new Set([...(known?.pods ?? []), pod]),
      drivers: new Map([...claim.drivers, ...(known?.drivers ?? [])]),
    };
  });
  return withClaims(state, records);
}

export function withoutUser(state: ClaimState, claims: readonly ClaimRecord[], pod: PodUid): ClaimState {
  const records = claims.map((claim) => ({
    ...claim,
    pods: new Set([...claim.pods].filter((uid) => uid !== pod)),
  }));
  return withClaims(state, records);
}

/** In place of what the driver said before: a claim that is prepared again must not have its devices twice. */
export function withDevices(
  state: ClaimState,
  driver: string,
  said: ReadonlyMap<string, readonly PreparedDevice[]>,
): ClaimState {
  const records = [...said].flatMap(([key, devices]) => {
    const known = state.get(key);
    return known === undefined ? [] : [{ ...known, drivers: new Map(known.drivers).set(driver, devices) }];
  });
  return withClaims(state, records);
}

export function claimsOfPod(state: ClaimState, pod: PodUid): readonly ClaimRecord[] {
  return [...state.values()].filter(({ pods }) => pods.has(pod));
}

export const noClaims: ClaimState = new Map();
