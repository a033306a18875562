import type { Clock } from "../../ground/base/index.ts";

export type HealthState =
  | { readonly state: "ok"; readonly note?: string }
  /** Nothing is broken, but something is not there yet. */
  | { readonly state: "waiting"; readonly reason: string }
  | { readonly state: "failed"; readonly reason: string };

/** A state with its age, in milliseconds. */
export interface HealthEntry {
  readonly name: string;
  readonly health: HealthState;
  /** How long the part has been in this state. */
  readonly sinceMs: number;
  /** How long ago the part last showed that it works; undefined: it never did. */
  readonly provenMs: number | undefined;
}

/** A check that is asked rather than told; `provenAt` is on the clock's monotonic scale. */
export type HealthCheck = () => HealthState & { readonly provenAt?: number | undefined };

/**
 * What each part of the agent last said of itself. Parts report; the listeners and the watchdog read. A part that is
 * expected to report regularly counts as failed when it falls silent.
 */
export class HealthRegistry {
  readonly #clock: Clock;
  readonly #parts = new Map<string, Part>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  report(name: string, health: HealthState): void {
    const part = this.#part(name);
    part.health = health;
    if (health.state === "ok") part.provenAt = this.#clock.monotonic();
    this.#noteState(part, health);
  }

  /** From its first report on, the part has to report `ok` again within `withinMs`. */
  expect(name: string, withinMs: number, complaint: string): void {
    this.#part(name).expected = { withinMs, complaint };
  }

  /** Asks `check` whenever somebody reads. */
  watch(name: string, check: HealthCheck): void {
    this.#part(name).check = check;
  }

  forget(name: string): void {
    this.#parts.delete(name);
  }

  /** All parts in the order they became known. */
  read(): readonly HealthEntry[] {
    return [...this.#parts].map(([name, part]) => this.#entry(name, part));
  }

  #entry(name: string, part: Part): HealthEntry {
    const now = this.#clock.monotonic();
    const asked = part.check?.();
    if (asked?.provenAt !== undefined) part.provenAt = asked.provenAt;
    else if (asked?.state === "ok") part.provenAt = now;
    const provenMs = part.provenAt === undefined ? undefined : now - part.provenAt;
    const { expected } = part;
    let health: HealthState = asked ?? part.health;
    if (expected !== undefined && health.state === "ok" && provenMs !== undefined && provenMs > expected.withinMs) {
      health = { state: "failed", reason: expected.complaint };
    }
    this.#noteState(part, health);
    return { name, health, sinceMs: now - part.since, provenMs };
  }

  #part(name: string): Part {
    let part = this.#parts.get(name);
    if (part === undefined) {
      // A part that has not spoken yet passes, as upstream's loops do before they start.
      const health: HealthState = { state: "ok" };
      part = { health, lastState: "ok", since: this.#clock.monotonic(), provenAt: undefined };
      this.#parts.set(name, part);
    }
    return part;
  }

  #noteState(part: Part, health: HealthState): void {
    if (part.lastState === health.state) return;
    part.lastState = health.state;
    part.since = this.#clock.monotonic();
  }
}

interface Part {
  health: HealthState;
  lastState: HealthState["state"];
  since: number;
  provenAt: number | undefined;
  expected?: { readonly withinMs: number; readonly complaint: string };
  check?: HealthCheck;
}
