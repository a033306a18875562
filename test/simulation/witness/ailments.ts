import type { ContainerPlan } from "../pod-maker.ts";

/** How long after its cause something may still follow from it. */
const memoryMs = 10 * 60_000;

/** When containers were last unwell or changed: what they may be stopped or unready for. */
export class Ailments {
  readonly #now: () => number;
  readonly #isDead: (container: string) => boolean;
  readonly #changedAt = new Map<string, number>();
  readonly #sickAt = new Map<string, number>();
  readonly #unreadyAt = new Map<string, number>();
  /** When the runtime last kept silent about a command in a container: as with the kubelet, a failed probe. */
  readonly #silentAt = new Map<string, number>();

  constructor(now: () => number, isDead: (container: string) => boolean) {
    this.#now = now;
    this.#isDead = isDead;
  }

  isChanged(container: string): void {
    this.#changedAt.set(container, this.#now());
  }

  isSick(container: string): void {
    this.#sickAt.set(container, this.#now());
  }

  isUnready(container: string): void {
    this.#unreadyAt.set(container, this.#now());
  }

  isSilent(container: string): void {
    this.#silentAt.set(container, this.#now());
  }

  hasChanged(container: string): boolean {
    return this.#isRecent(this.#changedAt, container);
  }

  wasSick(container: string): boolean {
    return this.#isDead(container) || this.#isRecent(this.#sickAt, container);
  }

  wasSilent(container: string): boolean {
    return this.#isRecent(this.#silentAt, container);
  }

  wasUnready(container: string): boolean {
    return this.#isRecent(this.#unreadyAt, container);
  }

  /** Somebody may take it for dead. */
  mayBeTakenForDead({ name, hasLiveness, hasStartup }: ContainerPlan): boolean {
    return (hasLiveness || hasStartup) && (this.wasSick(name) || this.wasSilent(name));
  }

  #isRecent(moments: ReadonlyMap<string, number>, name: string): boolean {
    return this.#now() - (moments.get(name) ?? Number.NEGATIVE_INFINITY) < memoryMs;
  }
}
