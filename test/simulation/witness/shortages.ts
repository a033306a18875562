import { mebibyte, type Pressure, wantedMemory } from "../machine/pressure.ts";
import type { Life } from "../machine/timeline.ts";
import { firstAmounts, type PodPlan } from "../pod-maker.ts";

/** A pod of which something runs, as it is ranked. */
export interface Running {
  readonly plan: PodPlan;
  /** The agent knows it for so long, and nothing of it has started or ended since. */
  readonly steadyMs: number;
  readonly containers: readonly string[];
}

export interface ShortagePorts {
  readonly pressure: Pressure;
  readonly now: () => number;
  readonly isDiskFull: () => boolean;
  readonly fail: (what: string) => void;
  /** Pods that this life of the agent runs and nobody wants to end. */
  readonly runningIn: (life: Life) => readonly Running[];
  /** Pods of which something still runs, although they are to go. */
  readonly isAnyLeaving: () => boolean;
}

interface Spell {
  readonly since: number;
  hasVictim: boolean;
}

/** Figures of the disk may be that old. */
const oldestReadingMs = 61_000;
/** In this time whoever looks has chosen somebody. */
const choosesWithinMs = 15_000;
const steadyMs = 5_000;

/** Sees whom the agent takes off when the machine runs short, and whether it does. */
export class Shortages {
  readonly #ports: ShortagePorts;
  #spell: Spell | undefined;
  /** Since when, and until when, this life has looked at the memory during this spell. */
  #looks: { readonly life: Life; readonly from: number; last: number } | undefined;
  #diskUntil = Number.NEGATIVE_INFINITY;

  constructor(ports: ShortagePorts) {
    this.#ports = ports;
  }

  begins(): void {
    this.#spell = { since: this.#ports.now(), hasVictim: false };
    this.#looks = undefined;
  }

  /** Called while it is still short. */
  ends(): void {
    const { now, pressure, fail, runningIn, isAnyLeaving } = this.#ports;
    const [spell, looks] = [this.#spell, this.#looks];
    this.#spell = undefined;
    if (spell === undefined || spell.hasVictim || looks === undefined || isAnyLeaving()) return;
    const hasLooked = looks.last - looks.from > choosesWithinMs && now() - looks.last < 3_000;
    if (!hasLooked || pressure.availableBytes >= wantedMemory.atOnce) return;
    const eligible = runningIn(looks.life).find((pod) => !isCritical(pod.plan) && pod.steadyMs > choosesWithinMs);
    if (eligible !== undefined) fail(`memory was short for long, and pod ${eligible.plan.name} was not taken off`);
  }

  diskIsBack(): void {
    this.#diskUntil = this.#ports.now();
  }

  looked(life: Life | undefined): void {
    if (this.#spell === undefined || life === undefined) return;
    const now = this.#ports.now();
    if (this.#looks?.life === life) this.#looks.last = now;
    else this.#looks = { life, from: now, last: now };
  }

  /** The agent has chosen a pod. */
  chosen(plan: PodPlan, containers: readonly string[], signal: string, life: Life): void {
    const { fail } = this.#ports;
    if (this.#spell !== undefined) this.#spell.hasVictim = true;
    if (isCritical(plan)) fail(`pod ${plan.name}, which the node can't do without, is taken off`);
    if (signal.startsWith("memory.")) {
      this.#requireMemoryShort(plan, life);
      this.#requireFirst({ plan, containers, steadyMs: 0 }, life);
    } else this.#requireDiskShort(plan);
  }

  /** A pod was refused for the conditions of the node. */
  refused(plan: PodPlan, conditions: string): void {
    const { fail } = this.#ports;
    if (isCritical(plan)) fail(`pod ${plan.name}, which the node can't do without, is refused: ${conditions}`);
    if (conditions === "MemoryPressure" && requestOf(plan) > 0)
      fail(`pod ${plan.name} has asked for memory, and is refused: ${conditions}`);
  }

  #requireMemoryShort(plan: PodPlan, life: Life): void {
    const { pressure, now, fail } = this.#ports;
    const { availableBytes } = pressure;
    if (availableBytes < wantedMemory.atOnce) return;
    const since = Math.max(this.#spell?.since ?? now(), life.startedAt);
    if (availableBytes < wantedMemory.afterAWhile && now() - since >= wantedMemory.whileMs) return;
    fail(`pod ${plan.name} is taken off while ${Math.round(availableBytes / mebibyte)} MiB of memory are available`);
  }

  #requireDiskShort(plan: PodPlan): void {
    const { pressure, isDiskFull, now, fail } = this.#ports;
    if (pressure.isDiskShort || isDiskFull() || now() - this.#diskUntil < oldestReadingMs) return;
    fail(`pod ${plan.name} is taken off for the disk, which has room`);
  }

  /** Who holds more than it asked for goes first, and of these who holds most above it. */
  #requireFirst(victim: Running, life: Life): void {
    const { runningIn, fail } = this.#ports;
    const own = this.#excessOf(victim);
    for (const other of runningIn(life)) {
      if (other.plan === victim.plan || isCritical(other.plan) || other.steadyMs < steadyMs) continue;
      const theirs = this.#excessOf(other);
      if (theirs <= own) continue;
      const [most, less] = [theirs, own].map((bytes) => `${Math.round(bytes / mebibyte)} MiB`);
      fail(`pod ${victim.plan.name} is taken off, ${less} above its request, before ${other.plan.name} with ${most}`);
    }
  }

  #excessOf({ plan, containers }: Running): number {
    const { pressure } = this.#ports;
    return containers.reduce((sum, name) => sum + pressure.appetiteOf(name), -requestOf(plan));
  }
}

function isCritical({ source, pod }: PodPlan): boolean {
  return source === "file" || pod.spec?.priorityClassName === "system-node-critical";
}

/** Of memory, in bytes: what all have that run at the same time. */
function requestOf({ pod, containers }: PodPlan): number {
  if (pod.spec?.resources !== undefined) return Number.parseInt(firstAmounts.memory, 10) * mebibyte;
  const asks = pod.spec?.containers?.some(({ resources }) => resources?.requests?.["memory"] !== undefined) === true;
  return asks ? containers.filter(({ role }) => role !== "init").length * 16 * mebibyte : 0;
}
