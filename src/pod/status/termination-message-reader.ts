import { setMaxListeners } from "node:events";
import { allEnded, type Clock, Limiter, never } from "../../ground/base/index.ts";
import type { ContainerId, ObservedContainer, PodUid } from "../../ground/model/index.ts";

/** All file access of the process shares four threads; a disk that hangs may have half of them, and no more. */
const readsAtOnce = 2;
/** So long a status waits for the last words it is to show; it goes on without them then. */
const patienceMs = 2_000;
/** A status shows the newest instance of a name and the one before. */
const shownPerName = 2;

/** The last words of ended containers, each read once; what can't be read in time is shown when it comes. */
export class TerminationTexts {
  readonly #ports: TerminationTextPorts;
  readonly #readings = new Map<PodUid, ReadonlyMap<ContainerId, Reading>>();
  readonly #turns = new Limiter(readsAtOnce);
  /** Reads that were begun and have outlasted our patience. */
  #stuck = 0;

  constructor(ports: TerminationTextPorts) {
    this.#ports = ports;
  }

  /** What is known of the container's last words. */
  of({ id }: ObservedContainer, uid: PodUid): string {
    return this.#readings.get(uid)?.get(id)?.text ?? "";
  }

  /** Resolves when the last words of these containers are known, or have taken too long. Never rejects. */
  async prepare(uid: PodUid, containers: readonly ObservedContainer[]): Promise<void> {
    const known = this.#readings.get(uid);
    const readings = new Map<ContainerId, Reading>();
    const fresh: [ObservedContainer, Reading][] = [];
    for (const container of shown(containers)) {
      const reading = known?.get(container.id) ?? { text: undefined, isLate: false, isBegun: false, done: undefined };
      readings.set(container.id, reading);
      if (reading.done === undefined) fresh.push([container, reading]);
    }
    if (readings.size === 0) this.#readings.delete(uid);
    else this.#readings.set(uid, readings);
    for (const [container, reading] of fresh) reading.done = this.#read(uid, container, reading);
    await this.#settledInTime([...readings.values()].filter(({ text, isLate }) => text === undefined && !isLate));
  }

  forget(uid: PodUid): void {
    this.#readings.delete(uid);
  }

  async #read(uid: PodUid, container: ObservedContainer, reading: Reading): Promise<void> {
    await this.#turns.run(async () => {
      if (this.#readings.get(uid)?.get(container.id) !== reading) return;
      reading.isBegun = true;
      reading.text = await this.#ports.read(uid, container).catch(() => "");
    }, never);
    if (!reading.isLate) return;
    if (reading.countsAsStuck === true) this.#stuck--;
    this.#ports.onLate(uid);
  }

  async #settledInTime(readings: readonly Reading[]): Promise<void> {
    if (readings.length === 0) return;
    const giveUp = (): void => {
      for (const reading of readings) {
        if (reading.text !== undefined || reading.isLate) continue;
        reading.isLate = true;
        reading.countsAsStuck = reading.isBegun;
        if (reading.isBegun) this.#stuck++;
      }
    };
    // Where all turns are taken by reads that hang, waiting is in vain and would slow down every pod.
    if (this.#stuck >= readsAtOnce) {
      giveUp();
      return;
    }
    await new Promise<void>((resolve) => {
      const timer = this.#ports.clock.after(patienceMs, () => {
        giveUp();
        resolve();
      });
      void allEnded(readings.map(({ done }) => done)).then(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

export interface TerminationTextPorts {
  readonly clock: Clock;
  readonly read: (uid: PodUid, container: ObservedContainer) => Promise<string>;
  /** Words have come that a status had to do without. */
  readonly onLate: (uid: PodUid) => void;
}

interface Reading {
  /** undefined: not read yet. */
  text: string | undefined;
  /** A status went on without it. */
  isLate: boolean;
  isBegun: boolean;
  countsAsStuck?: boolean;
  done: Promise<void> | undefined;
}

// Everybody who waits for a turn listens; more than ten are no leak.
setMaxListeners(0, never);

function shown(containers: readonly ObservedContainer[]): readonly ObservedContainer[] {
  const seen = new Map<string, number>();
  return containers.filter(({ name, state }) => {
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before < shownPerName && state === "exited";
  });
}
