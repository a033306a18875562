import { silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import type { EvictionSettings, EvictionSignal } from "../../src/ground/config/index.ts";
import { type IdentifiedPod, type PodUid, uidOf } from "../../src/ground/model/index.ts";
import type { CandidateLife, EvictionGrace, Reclaim } from "../../src/node/eviction/plan/planner.ts";
import type { DiskLayout, Observation, PressureCondition } from "../../src/node/eviction/plan/signals.ts";
import { amountToReach } from "../../src/node/eviction/plan/threshold-amounts.ts";
import { isAboutDisk } from "../../src/node/eviction/plan/thresholds-met.ts";
import { type DiskUse, type Held, type PodUse, reliefFor } from "../../src/node/eviction/plan/usage.ts";
import { DiskUses } from "../../src/node/eviction/watch/disk-uses.ts";
import { EvictionManager } from "../../src/node/eviction/watch/manager.ts";
import { FakeClock, settle } from "./fake-clock.ts";

export interface WorldPod {
  readonly pod: IdentifiedPod;
  memoryBytes: number;
  tasks: number;
  disk: DiskUse;
  life: CandidateLife;
  readonly exemption: string | undefined;
  /** It does not die, whatever is done. */
  readonly isUnkillable: boolean;
  readonly isUnmeasurable: boolean;
}

/** A node on virtual time whose pods do as they are told, with the real manager on it. */
export class EvictionWorld implements AsyncDisposable {
  // Nothing here takes more than a turn of the loop.
  readonly clock = new FakeClock(undefined, () => settle(1));
  readonly pods: WorldPod[] = [];
  readonly layout: DiskLayout;
  readonly capacity = { memory: 16_384, tasks: 10_000, bytes: 100_000, inodes: 10_000 };
  /** What others than pods use. */
  readonly others = { memory: 0, tasks: 0, nodefs: { bytes: 0, inodes: 0 }, imagefs: { bytes: 0, inodes: 0 } };
  readonly reclaimable: Map<Reclaim, Held>;
  /** In order. */
  readonly evicted: { readonly name: string; readonly grace: EvictionGrace; readonly message: string }[] = [];
  /** Victims that nobody needed, as the world sees it. */
  readonly needless: string[] = [];
  readonly events: string[] = [];
  readonly conditions: string[] = [];
  readonly manager: EvictionManager;
  looks = 0;
  /** False: the runtime has not said where it has its images. */
  areDisksKnown = true;
  /** From the end of its grace until a pod is gone. */
  killTakesMs = 10;
  /** What was last read of disks that do not answer any more. */
  #lastRead: ReadonlyMap<EvictionSignal, Observation> = new Map();
  readonly #settings: EvictionSettings;
  readonly #scope = new TaskScope();

  constructor(
    settings: EvictionSettings,
    {
      layout = "one disk for all",
      reclaimable,
    }: { layout?: DiskLayout; reclaimable?: ReadonlyMap<Reclaim, Held> } = {},
  ) {
    this.#settings = settings;
    this.layout = layout;
    this.reclaimable = new Map(reclaimable);
    const { clock } = this;
    this.manager = new EvictionManager(settings, {
      clock,
      log: silentLogger,
      read: async () => {
        this.looks++;
        return {
          observations: new Map([...this.observations(), ...this.#lastRead]),
          layout: this.areDisksKnown ? this.layout : undefined,
          memory: new Map(),
        };
      },
      alarms: { follow: async () => {}, close: () => {} },
      alarmPath: () => "/",
      pods: () => this.pods.map(({ pod, life, exemption }) => ({ pod, life, exemption })),
      meter: {
        refresh: async () => {},
        use: (pod) => this.#use(uidOf(pod)),
        containers: () => [],
        forgetAllBut: () => {},
      },
      disks: new DiskUses({
        clock,
        log: silentLogger,
        measure: async (pod) => {
          const disk = this.#find(uidOf(pod))?.disk;
          if (disk === undefined) throw new Error("it is gone");
          return { disk, containers: [] };
        },
      }),
      reclaim: async (means) => this.#reclaim(means),
      evict: (pod, { grace, message }) => this.#evict(pod, grace, message),
      hasten: (pod, grace) => this.#stop(uidOf(pod), grace),
      recordNodeEvent: ({ reason, message }) => this.events.push(`${reason} ${message}`),
      onConditions: (conditions: readonly PressureCondition[]) =>
        this.conditions.push([...conditions].sort().join(" ")),
      onStatsAge: () => {},
    });
  }

  start(): void {
    this.#scope.spawn("eviction", (signal) => this.manager.run(signal));
  }

  /** From now on, what was read last is all that is known of the disks. */
  hangDisks(): void {
    const readAt = this.clock.monotonic();
    const disks = [...this.observations()].filter(([signal]) => isAboutDisk({ signal }));
    this.#lastRead = new Map(disks.map(([signal, observed]) => [signal, { ...observed, readAt }]));
  }

  observations(): ReadonlyMap<EvictionSignal, Observation> {
    const seen = new Map<EvictionSignal, Observation>();
    const sum = (amount: (pod: WorldPod) => number): number => this.pods.reduce((all, pod) => all + amount(pod), 0);
    const note = (signal: EvictionSignal, capacity: number, used: number): void => {
      // More may be used than there is: so what one gives back is what there is more of, as on a real machine.
      seen.set(signal, { available: capacity - used, capacity });
    };
    const { memory, tasks, bytes, inodes } = this.capacity;
    note("memory.available", memory, this.others.memory + sum((pod) => pod.memoryBytes));
    note("pid.available", tasks, this.others.tasks + sum((pod) => pod.tasks));
    for (const place of ["nodefs", "imagefs", "containerfs"] as const) {
      const others = isOnNodeDisk(place, this.layout) ? this.others.nodefs : this.others.imagefs;
      const held = (unit: keyof Held): number =>
        sum(({ disk }) => onDisk(disk, place, this.layout)[unit]) +
        others[unit] +
        [...this.reclaimable].reduce(
          (all, [means, each]) => all + (isReclaimedOn(place, means, this.layout) ? each[unit] : 0),
          0,
        );
      note(`${place}.available`, bytes, held("bytes"));
      note(`${place}.inodesFree`, inodes, held("inodes"));
    }
    return seen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }

  #find(uid: PodUid): WorldPod | undefined {
    return this.pods.find(({ pod }) => uidOf(pod) === uid);
  }

  #use(uid: PodUid): PodUse | undefined {
    const found = this.#find(uid);
    if (found === undefined || found.isUnmeasurable) return undefined;
    return { memoryBytes: found.memoryBytes, tasks: found.tasks };
  }

  #evict(pod: IdentifiedPod, grace: EvictionGrace, message: string): void {
    if (this.#isNeedless()) this.needless.push(pod.metadata.name);
    this.evicted.push({ name: pod.metadata.name, grace, message });
    this.#stop(uidOf(pod), grace);
  }

  /** Whether those who are about to die would have been enough. */
  #isNeedless(): boolean {
    const dying = this.pods.filter(({ life, isUnkillable }) => life.step === "stopping" && !isUnkillable);
    const seen = this.observations();
    return this.#settings.thresholds.every((threshold) => {
      const observed = seen.get(threshold.signal);
      if (observed === undefined) return true;
      const freed = dying.reduce(
        (all, { memoryBytes, tasks, disk }) =>
          all + (reliefFor(threshold.signal, { memoryBytes, tasks, disk }, this.layout) ?? 0),
        0,
      );
      return observed.available + freed >= amountToReach(threshold, observed);
    });
  }

  /** Asked nicely, a pod takes all the time it is given. */
  #stop(uid: PodUid, grace: EvictionGrace): void {
    const found = this.#find(uid);
    if (found === undefined) return;
    const ms = grace === "at once" ? 0 : Math.max(1, grace) * 1000;
    const killAt = this.clock.monotonic() + ms;
    if (found.life.step === "stopping" && (found.life.killAt ?? 0) <= killAt) return;
    found.life = { step: "stopping", killAt, isAtOnce: grace === "at once" };
    if (found.isUnkillable) return;
    this.clock.after(ms + this.killTakesMs, () => {
      const index = this.pods.indexOf(found);
      if (index < 0) return;
      this.pods.splice(index, 1);
      // Its logs stay, and so does what it had of the node's own directories.
      this.others.nodefs.bytes += found.disk.logs.bytes + found.disk.hostVolumes.bytes;
      this.others.nodefs.inodes += found.disk.logs.inodes + found.disk.hostVolumes.inodes;
    });
  }

  async #reclaim(means: Reclaim): Promise<void> {
    this.reclaimable.delete(means);
  }
}

type Place = "nodefs" | "imagefs" | "containerfs";

/** Whether it is the disk that also holds the node's own files. */
function isOnNodeDisk(place: Place, layout: DiskLayout): boolean {
  switch (layout) {
    case "one disk for all":
      return true;
    case "images apart":
      return place === "nodefs";
    case "containers apart":
      return place !== "imagefs";
  }
}

/** Dead containers have their layers where those that live have theirs. */
function isReclaimedOn(place: Place, means: Reclaim, layout: DiskLayout): boolean {
  if (layout === "containers apart") return (place === "imagefs") === (means === "images");
  return layout === "one disk for all" || place !== "nodefs";
}

function onDisk({ layers, logs, ownVolumes, hostVolumes }: DiskUse, place: Place, layout: DiskLayout): Held {
  const node = [logs, ownVolumes, hostVolumes];
  const areLayersHere = layout === "images apart" ? place !== "nodefs" : isOnNodeDisk(place, layout);
  const parts = [...(areLayersHere ? [layers] : []), ...(isOnNodeDisk(place, layout) ? node : [])];
  return parts.reduce((all, { bytes, inodes }) => ({ bytes: all.bytes + bytes, inodes: all.inodes + inodes }), {
    bytes: 0,
    inodes: 0,
  });
}
