import type { FakeRuntime } from "../../../src/beside/hollow/index.ts";
import type { Life } from "../machine/timeline.ts";
import type { ContainerPlan, PodPlan } from "../pod-maker.ts";

export type ContainerRecord = ReturnType<FakeRuntime["containers"]>[number];

/** Why a container runs no more. */
interface Ending {
  readonly code: number;
  readonly reason: string;
  readonly by: "itself" | "the agent" | "the power";
}

/** One run of a container. */
export interface Instance {
  readonly id: string;
  readonly startedAt: number;
  readonly startedIn: Life | undefined;
  ending: Ending | undefined;
  endedAt: number | undefined;
}

/** What has been seen of a pod so far. */
export interface Seen {
  readonly plan: PodPlan;
  unwantedAt: number | undefined;
  isForced: boolean;
  /** Its sandbox died, or its records were lost, at some time. */
  hasLostSandbox: boolean;
  /** A container's end has asked for all of its pod to start anew. */
  restartsAll: boolean;
  /** The life of the agent that has taken it off because the machine ran short. */
  evictedIn: Life | undefined;
  /** It was refused because the machine ran short. */
  isRefused: boolean;
  /** What it asks for is not what it asked for when it came. */
  isResized: boolean;
  /** What its container was given. */
  device: string | undefined;
  phase: string | undefined;
  readonly instances: Map<string, Instance[]>;
  readonly restartCounts: Map<string, number>;
  readonly ready: Map<string, string>;
}

export interface SeenContainer {
  readonly seen: Seen;
  readonly plan: ContainerPlan;
}

/** All pods that were ever wanted. */
export class SeenPods {
  readonly #byName = new Map<string, Seen>();
  readonly #byUid = new Map<string, Seen>();
  readonly #byContainer = new Map<string, SeenContainer>();

  add(plan: PodPlan, uid: string | undefined): void {
    const seen: Seen = {
      plan,
      unwantedAt: undefined,
      isForced: false,
      hasLostSandbox: false,
      restartsAll: false,
      evictedIn: undefined,
      isRefused: false,
      isResized: false,
      device: undefined,
      phase: undefined,
      instances: new Map(),
      restartCounts: new Map(),
      ready: new Map(),
    };
    this.#byName.set(plan.name, seen);
    if (uid !== undefined) this.#byUid.set(uid, seen);
    for (const container of plan.containers) this.#byContainer.set(container.name, { seen, plan: container });
  }

  all(): Iterable<Seen> {
    return this.#byName.values();
  }

  /** Those that came by the API. */
  withUids(): Iterable<readonly [string, Seen]> {
    return this.#byUid;
  }

  named(name: string): Seen | undefined {
    return this.#byName.get(name);
  }

  withUid(uid: string): Seen | undefined {
    return this.#byUid.get(uid);
  }

  withContainer(name: string): SeenContainer | undefined {
    return this.#byContainer.get(name);
  }

  /** A name may come back with another pod; those of containers do not. */
  ofPlan(plan: PodPlan): Seen | undefined {
    const [first] = plan.containers;
    return first === undefined ? undefined : this.#byContainer.get(first.name)?.seen;
  }
}

export function nameOf({ config }: Pick<ContainerRecord, "config">): string {
  return config.metadata?.name ?? "";
}

export function isOver(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}
