import type { Container, IdentifiedPod, RejectionReason } from "../../../ground/model/index.ts";
import type { NumaMask } from "./numa-nodes.ts";

/** NUMA nodes that a resource could come from. */
export interface Hint {
  /** Undefined: any. */
  readonly nodes: NumaMask | undefined;
  /** Whether it takes no more nodes than such a request ever needs. */
  readonly isPreferred: boolean;
}

/** By the name of a resource. No list is no opinion; an empty one means that the request can't be met now. */
export type Hints = ReadonlyMap<string, readonly Hint[] | undefined>;

export const noOpinion: Hints = new Map();

/**
 * Port: who gives out a resource that lies on NUMA nodes. All of it is done at once, in memory; whoever has to ask
 * others first makes the pod wait before it comes here.
 */
export interface HintProvider {
  hints(pod: IdentifiedPod, container: Container): Hints;
  /** For the pod as a whole. */
  podHints(pod: IdentifiedPod): Hints;
  /** Gives the container what it asks for, if it has not got it yet, where the hint says. Throws AllocationError. */
  allocate(pod: IdentifiedPod, container: Container, hint: Hint): void;
  /** What is given out now; the function makes it so again. */
  mark(): () => void;
}

/** A resource can't be given; the reason is what users see. */
export class AllocationError extends Error {
  override readonly name = "AllocationError";
  readonly reason: RejectionReason;

  constructor(reason: RejectionReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** For what has no reason of its own. */
export function unexpected(message: string): AllocationError {
  return new AllocationError("UnexpectedAdmissionError", `Allocate failed due to ${message}, which is unexpected`);
}
