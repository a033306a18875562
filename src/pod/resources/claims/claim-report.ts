import type { Pod } from "../../../ground/model/index.ts";
import { type ClaimState, claimKey } from "./claim-state.ts";

/** What is known of claims besides who has them. */
export interface ClaimReportView {
  readonly state: ClaimState;
  isPrepared(key: string): boolean;
  isRegistered(driver: string): boolean;
}

/** Which claims pods of this node use, as JSON: for `nodelet resources`. */
export function claimReport({ state, isPrepared, isRegistered }: ClaimReportView, pods: readonly Pod[]): object[] {
  const names = new Map(pods.map(({ metadata }) => [metadata?.uid, `${metadata?.namespace}/${metadata?.name}`]));
  return [...state.values()].map((claim) => ({
    namespace: claim.namespace,
    name: claim.name,
    uid: claim.uid,
    pods: [...claim.pods].map((uid) => names.get(uid) ?? uid),
    /** By this run of the agent; pods that ran before it keep what they have. */
    isPrepared: isPrepared(claimKey(claim)),
    drivers: [...claim.drivers].map(([driver, devices]) => ({
      driver,
      isRegistered: isRegistered(driver),
      devices,
    })),
  }));
}
