import type { IdentifiedPod, PodUid } from "../../ground/model/index.ts";
import type { PendingResize } from "../status/index.ts";

/** A resize that waits; since when, by the clock that is never set. */
export interface WaitingResize extends PendingResize {
  readonly since: number;
}

/** How a pod came, as far as the decision about it depends on that. */
export interface Arrival {
  /** Its source can't confirm that it is wanted. */
  readonly isProvisional: boolean;
  /** What its source says against its start. */
  readonly hold: string | undefined;
}

/**
 * What the registry knows of wanted pods, and of those that the runtime has. Only the registry changes it, and
 * `OrphanedPods` what it has taken care of; parts that are made before the registry read here.
 */
export class WantedPods {
  readonly pods = new Map<PodUid, IdentifiedPod>();
  /** Wanted, and waiting for what the decision about them rests on. */
  readonly pending = new Map<PodUid, Arrival>();
  /** Refused for good, though their source may go on to name them. */
  readonly rejected = new Set<PodUid>();
  /** Those that ask for other resources than they were promised, and why they do not have them. */
  readonly resizes = new Map<PodUid, WaitingResize>();
  /** Whose resizes were accepted, and have not been said to be done; by the version of the spec that was accepted. */
  readonly acceptedResizes = new Map<PodUid, number | undefined>();
  /** The runtime has them and no worker does: left by an earlier run of the agent, or by another one. By full name. */
  readonly found = new Map<PodUid, string | undefined>();

  has(uid: PodUid): boolean {
    return this.pods.has(uid);
  }

  /** Named by a source and not refused, whether or not it could be handed to its worker yet. */
  isWanted(uid: PodUid): boolean {
    return this.pods.has(uid) && !this.rejected.has(uid);
  }

  /** Whether a pod of this full name was found in the runtime and nobody has claimed it or begun to stop it yet. */
  isUnclaimed(name: string): boolean {
    return [...this.found.values()].includes(name);
  }

  /** Whether a wanted pod that runs here already waits for the decision about it. */
  isTakingOver(): boolean {
    return [...this.pending.keys()].some((uid) => this.found.has(uid));
  }
}
