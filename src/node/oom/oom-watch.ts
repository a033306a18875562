import { setImmediate } from "node:timers/promises";
import { type Clock, isAbort, type Logger, messageOf, Pause, Topic } from "../../ground/base/index.ts";
import type { RecordNodeEvent } from "../../ground/model/index.ts";
import { containerIdsIn, type OomKill, OomReader } from "./kernel-oom.ts";
import type { SeenRecords } from "./seen-records.ts";

export interface OomWatchPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly openKernelLog: () => Promise<KernelLogPort>;
  /** Of all processes since the boot; undefined: the kernel does not count. */
  readonly killsOfMachine: () => number | undefined;
  readonly seen: Pick<SeenRecords, "load" | "save">;
  readonly recordNodeEvent: RecordNodeEvent;
  /** For metrics. */
  readonly onKill: (of: OomKill["of"]) => void;
}

/** Containers that run, each with the number of its processes that were killed, by its cgroup's own count. */
export type KillsOfContainers = () => Iterable<readonly [id: string, kills: number]>;

interface KernelLogPort extends AsyncDisposable {
  read(most: number): readonly { readonly seq: number; readonly text: string }[];
}

const lookEveryMs = 10_000;
/** Reading takes about a tenth of a millisecond each; others want a turn between. */
const recordsPerTurn = 100;
/** A container's death waits for no more than this. */
const recordsAtOnce = 2_000;
/** The kernel's buffer holds less; who keeps on writing is not listened to without end. */
const recordsPerLook = 20_000;
const mostContainers = 2_000;

/**
 * Learns of processes that the kernel killed for want of memory: from the kernel's log, which also tells of those whose
 * cgroup is gone by then, and from the counters of the cgroups of running containers. Nothing is read while the
 * kernel's own count stands still.
 */
export class OomWatch {
  /** A process of this container was killed; and which one, where the kernel's log said so. */
  readonly containerKilled = new Topic<[id: string, kill: OomKill | undefined]>();
  readonly #ports: OomWatchPorts;
  readonly #pause: Pause;
  readonly #reader = new OomReader();
  /** How many kills are known of each container, by source; the newest containers last. */
  readonly #kills = new Map<string, { logged: number; counted: number }>();
  #kernelLog: KernelLogPort | undefined;
  /** Records up to this one are no news. */
  #seenSeq = -1;
  #lastSeq = -1;
  #machineKills: number | undefined;
  #unsaved = false;
  /** News that wait until it is saved that they were told: an agent that is killed meanwhile tells of nothing twice. */
  #untold: { readonly kill: OomKill; readonly id: string | undefined }[] = [];

  constructor(ports: OomWatchPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  async run(killsOfContainers: KillsOfContainers, signal: AbortSignal): Promise<void> {
    const { log, openKernelLog, seen, killsOfMachine } = this.#ports;
    try {
      this.#kernelLog = await openKernelLog();
    } catch (error) {
      const reason = messageOf(error);
      log.warn("Cannot read the kernel's log; it is not seen when the whole machine runs out of memory", { reason });
    }
    await using _ = this.#kernelLog;
    try {
      const known = await seen.load().catch((error: unknown) => {
        log.warn("Cannot tell how far the kernel's log was read", { reason: messageOf(error) });
        return undefined;
      });
      this.#seenSeq = known ?? Number.POSITIVE_INFINITY;
      await this.#try(signal, async () => {
        this.#machineKills = killsOfMachine();
        await this.#readAll(signal);
      });
      // Whatever was there before the node had an agent is history.
      if (known === undefined) {
        this.#seenSeq = this.#lastSeq;
        this.#unsaved = true;
      }
      for (;;) {
        await this.#try(signal, async () => {
          do await this.#saveAndTell();
          while (this.#untold.length > 0);
        });
        await this.#pause.wait(lookEveryMs, signal);
        await this.#try(signal, () => this.#look(killsOfContainers, signal));
      }
    } finally {
      this.#kernelLog = undefined;
    }
  }

  /** Somebody has reason to think that a process was killed. */
  hasten(): void {
    this.#pause.cutShort();
  }

  /** Whether the kernel killed a process of this container. Asked when one has ended; what is known by now counts. */
  wasKilled(id: string): boolean {
    if (this.#hasMoved()) this.#read(recordsAtOnce);
    return this.#kills.has(id);
  }

  /** One look that fails is no reason to look no more. */
  async #try(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#machineKills = undefined;
      this.#ports.log.error(
        "Could not look for processes that were killed because memory ran out; trying again",
        error,
      );
    }
  }

  async #look(killsOfContainers: KillsOfContainers, signal: AbortSignal): Promise<void> {
    if (!this.#hasMoved()) return;
    this.#machineKills = this.#ports.killsOfMachine();
    await this.#readAll(signal);
    try {
      for (const [id, kills] of killsOfContainers()) this.#count(id, kills);
    } catch (error) {
      // What was not looked at is looked at again.
      this.#machineKills = undefined;
      this.#ports.log.warn("Not all containers could be asked for kills; asking again", { reason: messageOf(error) });
    }
  }

  /** Whether the kernel has killed anything since we last looked; true where it does not count. */
  #hasMoved(): boolean {
    const now = this.#ports.killsOfMachine();
    return now === undefined || now !== this.#machineKills;
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    let left = recordsPerLook;
    while (this.#read(recordsPerTurn) === recordsPerTurn) {
      signal.throwIfAborted();
      left -= recordsPerTurn;
      if (left <= 0) {
        // The next look goes on, whatever the count says.
        this.#machineKills = undefined;
        return;
      }
      await setImmediate();
    }
  }

  #read(most: number): number {
    let records: ReturnType<KernelLogPort["read"]> = [];
    try {
      records = this.#kernelLog?.read(most) ?? [];
    } catch (error) {
      this.#ports.log.warn("Cannot read the kernel's log any more", { reason: messageOf(error) });
      this.#kernelLog = undefined;
    }
    for (const { seq, text } of records) {
      this.#lastSeq = Math.max(this.#lastSeq, seq);
      const kill = this.#reader.take(text);
      if (kill !== undefined) this.#heed(kill, seq);
    }
    return records.length;
  }

  #heed(kill: OomKill, seq: number): void {
    const isNews = seq > this.#seenSeq;
    const [id] = containerIdsIn(kill.cgroup);
    const isFirst = id !== undefined && this.#note(id, "logged", (this.#kills.get(id)?.logged ?? 0) + 1);
    if (!isNews) return;
    this.#seenSeq = seq;
    this.#unsaved = true;
    this.#untold.push({ kill, id: isFirst ? id : undefined });
    this.hasten();
  }

  async #saveAndTell(): Promise<void> {
    const news = this.#untold;
    this.#untold = [];
    await this.#save();
    for (const { kill, id } of news) this.#tell(kill, id);
  }

  #tell(kill: OomKill, id: string | undefined): void {
    const { recordNodeEvent, onKill, log } = this.#ports;
    log.info("The kernel killed a process because memory ran out", { ...kill });
    onKill(kill.of);
    if (kill.of === "machine") {
      const message = `System OOM encountered, victim process: ${kill.process}, pid: ${kill.pid}`;
      recordNodeEvent({ type: "Warning", reason: "SystemOOM", message });
    }
    if (id !== undefined) this.containerKilled.tell(id, kill);
  }

  #count(id: string, kills: number): void {
    if (kills === 0 || !this.#note(id, "counted", kills)) return;
    // Of those that the log tells of it has been said what is to be said.
    if (this.#kernelLog === undefined) this.#ports.onKill("cgroup");
    this.containerKilled.tell(id, undefined);
  }

  /** True when more is known now than from either source before. */
  #note(id: string, source: "logged" | "counted", kills: number): boolean {
    const known = this.#kills.get(id) ?? { logged: 0, counted: 0 };
    const before = Math.max(known.logged, known.counted);
    this.#kills.delete(id);
    this.#kills.set(id, { ...known, [source]: kills });
    const [oldest] = this.#kills.keys();
    if (this.#kills.size > mostContainers && oldest !== undefined) this.#kills.delete(oldest);
    return kills > before;
  }

  async #save(): Promise<void> {
    if (!this.#unsaved) return;
    this.#unsaved = false;
    try {
      await this.#ports.seen.save(this.#seenSeq);
    } catch (error) {
      this.#ports.log.warn("Cannot save how far the kernel's log was read", { reason: messageOf(error) });
    }
  }
}
