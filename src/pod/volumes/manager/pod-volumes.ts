import { join } from "node:path";
import {
  aFewAtOnce,
  allEnded,
  type Clock,
  explain,
  KeyedWorkers,
  type Logger,
  mapAtMost,
  never,
  type TaskScope,
} from "../../../ground/base/index.ts";
import {
  type IdentifiedPod,
  jsonEqual,
  type PodLedger,
  type PodUid,
  type RecordPodEvent,
  uidOf,
} from "../../../ground/model/index.ts";
import type { PodVolume, SubPathRequest, SubPaths } from "../../runtime/index.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import { ownerOf, type VolumeKind, type VolumeSource } from "../kinds/kind.ts";
import type { MeasuredVolume } from "../stats/pod-usage.ts";
import type { Claims } from "./claims.ts";
import { type ContentSources, ContentUpdates } from "./content-updates.ts";
import { type ForeseenVolume, foreseeVolume } from "./foresee-volume.ts";
import {
  cleanOrphanedDirectories,
  type OrphanedDirectoriesReport,
  orphanedDirectories,
} from "./orphaned-directories.ts";
import { PodPlaces } from "./places.ts";
import { PodEntry } from "./pod-entry.ts";
import { releaseVolumes } from "./release.ts";
import { type ShownVolume, shownVolume } from "./shown-volume.ts";
import { type MountReport, VolumeTask } from "./volume-task.ts";
import { volumesOfContainers } from "./volumes-of-containers.ts";

export interface PodVolumesPorts extends ContentSources {
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  readonly random: () => number;
  readonly podsDir: string;
  readonly kinds: readonly VolumeKind[];
  readonly files: VolumeFiles;
  /** Undefined without an API server. */
  readonly claims: Claims | undefined;
  /** The last missing volume of a pod that was refused has arrived. */
  readonly onReady: (uid: PodUid) => void;
  /** A change of an object has reached the files of a pod; for the metric of that name. */
  readonly onContent?: (event: { readonly plugin: string; readonly delayMs: number }) => void;
  readonly onMount?: (mount: MountReport) => void;
}

/** A pod that is gone, or going; `since` is undefined where nothing is left but its name. */
export interface LeavingPod {
  readonly uid: PodUid;
  readonly since: number | undefined;
}

/** Of one pod; a pod may have any number, on file systems that hang. */
const volumesMeasuredAtOnce = 4;

/**
 * The volumes of every pod on this node. Each volume has a task that makes it, renews its content when something it
 * is made of changes, and tries again after a failure; tasks run side by side and only when something calls for it.
 * What is on disk and in the mount table is the truth: taking volumes away starts from there, so an agent that was
 * killed at any moment leaves nothing that the next one can't find.
 */
export class PodVolumes {
  readonly #ports: PodVolumesPorts;
  readonly #places: PodPlaces;
  readonly #entries = new Map<PodUid, PodEntry>();
  readonly #tasks = new Map<string, VolumeTask>();
  readonly #contentUpdates: ContentUpdates;
  readonly #runs: KeyedWorkers<string>;
  readonly #inProgress = new Map<string, Promise<void>>();
  readonly #releases = new Map<PodUid, Promise<void>>();
  /** Since when volumes that are not gone yet have been told to go. */
  readonly #leavingSince = new Map<PodUid, number>();
  /** How a container is given only a part of a volume. */
  readonly subPaths: SubPaths;

  constructor(scope: TaskScope, ports: PodVolumesPorts) {
    this.#ports = ports;
    this.#places = new PodPlaces(ports.podsDir);
    this.#runs = new KeyedWorkers(scope, (key, signal) => this.#run(key, signal));
    this.subPaths = {
      create: (request) => this.#createSubPath(request),
      prepare: (request) => this.#prepareSubPath(request),
    };
    this.#contentUpdates = new ContentUpdates(ports);
  }

  /** Learns what an earlier run has left; call once, before any pod is wanted. */
  async restore(): Promise<void> {
    const found = (await mapAtMost(aFewAtOnce, await this.#places.uids(), (uid) => this.#places.found(uid))).flat();
    const { kinds } = this.#ports;
    for (const kind of kinds) await kind.restore?.(found.filter(({ plugin }) => ownerOf(kinds, plugin) === kind));
    this.#ports.log.info("Found volumes of an earlier run", { count: found.length });
  }

  /** The pod is wanted in this version: its volumes are made in the background and their content kept up to date. */
  want(pod: IdentifiedPod): void {
    this.#want(pod);
  }

  /** Resolves when every volume of the pod is there. Throws VolumeError as soon as one can't be had now. */
  async mount(pod: IdentifiedPod, signal: AbortSignal): Promise<void> {
    const uid = uidOf(pod);
    await this.#releases.get(uid)?.catch(() => {});
    const entry = this.#want(pod);
    const { ledger } = this.#ports;
    let wasBlocked = false;
    while (!entry.isComplete) {
      const failure = entry.failure();
      if (failure !== undefined) {
        entry.isRefused = true;
        throw failure;
      }
      ledger.block(uid, { reason: "MountingVolumes", message: entry.waitingFor() });
      wasBlocked = true;
      await entry.nextChange(signal);
    }
    if (wasBlocked) ledger.block(uid, undefined);
  }

  /** What would come of the pod's volumes; of so many at most. Nothing is made, held or told. */
  async foresee(pod: IdentifiedPod, most: number, signal: AbortSignal): Promise<readonly ForeseenVolume[]> {
    const { kinds, claims } = this.#ports;
    const ports = { kinds, claims, places: this.#places };
    const used = volumesOfContainers(pod).slice(0, most);
    return await mapAtMost(aFewAtOnce, used, (volume) => foreseeVolume(pod, volume, ports, signal));
  }

  /** What is ready for the pod's containers; empty before `mount`. */
  of(uid: PodUid): ReadonlyMap<string, PodVolume> {
    return this.#entries.get(uid)?.mounted() ?? new Map();
  }

  /** The pod's volumes as people are shown them. */
  shown(uid: PodUid): readonly ShownVolume[] {
    return [...(this.#entries.get(uid)?.tasks.values() ?? [])].map(shownVolume);
  }

  /**
   * Pods that are gone, or going, and whose volumes or directories are still there, with the time since when. As long as
   * nobody knows which pods there are: those that were told to go.
   */
  async leaving(known: ReadonlySet<PodUid> | undefined): Promise<readonly LeavingPod[]> {
    const orphaned = known === undefined ? [] : await this.orphanedDirectories(known);
    const untried = orphaned.filter((uid) => !this.#leavingSince.has(uid));
    const found = await mapAtMost(aFewAtOnce, untried, async (uid) => ({
      uid,
      since: await this.#places.lastChange(uid),
    }));
    return [...Array.from(this.#leavingSince, ([uid, since]) => ({ uid, since })), ...found];
  }

  /** Groups that the pod's processes must be in to use its volumes. */
  groupsOf(uid: PodUid): readonly number[] {
    return this.#entries.get(uid)?.groups() ?? [];
  }

  /** How full the pod's volumes are, as far as that can be told. Trouble with one does not hide the others. */
  async measure(uid: PodUid, signal: AbortSignal): Promise<readonly MeasuredVolume[]> {
    const tasks = [...(this.#entries.get(uid)?.tasks.values() ?? [])];
    const measured = await mapAtMost(volumesMeasuredAtOnce, tasks, async (task) => {
      try {
        return await task.measure(signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#ports.log.debug(2, "A volume can't be measured", { uid, volume: task.name, reason: explain(error) });
        return undefined;
      }
    });
    return measured.filter((volume) => volume !== undefined);
  }

  /** Takes away the pod's volumes after its last container has ended. Throws VolumeError while that is not possible. */
  unmount(uid: PodUid, signal: AbortSignal = never): Promise<void> {
    const running = this.#releases.get(uid);
    if (running !== undefined) return running;
    // Of one that failed before, the first time stays.
    if (!this.#leavingSince.has(uid)) this.#leavingSince.set(uid, this.#ports.clock.now());
    const release = this.#release(uid, signal).finally(() => this.#releases.delete(uid));
    this.#releases.set(uid, release);
    return release;
  }

  /** Tries at once again what failed, because something outside (an attachment, a driver) has changed. */
  retryNow(): void {
    for (const task of this.#tasks.values()) if (task.state.step === "failed") task.retryNow();
  }

  /** Runs `setUp` again for the volumes that the condition holds for. */
  renew(applies: (volume: { readonly plugin: string; readonly source: VolumeSource }) => boolean): void {
    for (const task of this.#tasks.values()) {
      const { plugin, source } = task;
      if (plugin !== undefined && source !== undefined && applies({ plugin, source })) task.retryNow();
    }
  }

  /**
   * Removes directories of pods that are neither wanted nor running, with the volumes in them. What can't be removed
   * safely stays and is told of.
   */
  async cleanOrphanedDirectories(known: ReadonlySet<PodUid>, signal: AbortSignal): Promise<OrphanedDirectoriesReport> {
    const isKnown = this.#isKnownBeside(known);
    const report = await cleanOrphanedDirectories(
      { places: this.#places, isKnown, release: (uid) => this.#releaseOrphan(uid, signal), clock: this.#ports.clock },
      signal,
    );
    await this.#forgetLeft();
    for (const kind of this.#ports.kinds) {
      try {
        await kind.cleanUp?.(signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#ports.log.warn("Could not remove files that belong to no volume any more", {
          plugin: kind.plugin,
          reason: explain(error),
        });
      }
    }
    return report;
  }

  /** Pods whose directories `cleanOrphanedDirectories` would remove now. */
  async orphanedDirectories(known: ReadonlySet<PodUid>): Promise<readonly PodUid[]> {
    return await orphanedDirectories({ places: this.#places, isKnown: this.#isKnownBeside(known) });
  }

  /** An earlier run has told it to go; nothing of it has changed since it would not. */
  async #releaseOrphan(uid: PodUid, signal: AbortSignal): Promise<void> {
    const since = await this.#places.lastChange(uid);
    if (since !== undefined && !this.#leavingSince.has(uid)) this.#leavingSince.set(uid, since);
    await this.unmount(uid, signal);
  }

  /** Somebody else may have taken away what would not go. */
  async #forgetLeft(): Promise<void> {
    const there = new Set(await this.#places.uids());
    for (const uid of this.#leavingSince.keys()) {
      if (!there.has(uid) && !this.#releases.has(uid)) this.#leavingSince.delete(uid);
    }
  }

  #isKnownBeside(known: ReadonlySet<PodUid>): (uid: PodUid) => boolean {
    return (uid) => known.has(uid) || this.#entries.has(uid) || this.#releases.has(uid);
  }

  /** Every volume of a known kind, and whether it is there; for metrics. */
  kinds(): readonly { readonly plugin: string; readonly isMounted: boolean }[] {
    return [...this.#tasks.values()].flatMap(({ plugin, state }) =>
      plugin === undefined ? [] : [{ plugin, isMounted: state.step === "mounted" }],
    );
  }

  /** Pods, tasks and objects in use; tests look for leaks. */
  get size(): { readonly pods: number; readonly tasks: number; readonly objects: number; readonly running: number } {
    return {
      pods: this.#entries.size,
      tasks: this.#tasks.size,
      objects: this.#contentUpdates.size,
      running: this.#runs.size,
    };
  }

  #want(pod: IdentifiedPod): PodEntry {
    const uid = uidOf(pod);
    const known = this.#entries.get(uid);
    if (known?.pod === pod) return known;
    if (known === undefined) this.#leavingSince.delete(uid);
    const entry = known ?? new PodEntry(uid, pod);
    this.#entries.set(uid, entry);
    // Once for all of them: a pod may have thousands of volumes, and as many labels and annotations.
    const isRelabelled = !jsonEqual(entry.pod.metadata, pod.metadata);
    entry.pod = pod;
    for (const used of volumesOfContainers(pod)) {
      const task = entry.tasks.get(used.volume.name);
      if (task !== undefined) task.podChanged(pod, used, isRelabelled);
      else this.#begin(entry, new VolumeTask(pod, used, this.#taskPorts(entry)));
    }
    return entry;
  }

  #begin(entry: PodEntry, task: VolumeTask): void {
    entry.add(task);
    this.#tasks.set(task.key, task);
    this.#runs.wake(task.key);
  }

  #taskPorts(entry: PodEntry): ConstructorParameters<typeof VolumeTask>[2] {
    const { clock, log, ledger, recordEvent, random, kinds, claims, objects, onContent, onMount } = this.#ports;
    return {
      clock,
      log,
      ledger,
      recordEvent,
      random,
      kinds,
      claims,
      places: this.#places,
      pollMs: objects?.pollMs,
      wake: (task) => this.#runs.wake(task.key),
      onState: (task) => this.#stateChanged(entry, task),
      onNeeds: (task, before) => this.#contentUpdates.needsChanged(task, before),
      checkExclusive: (task, source) => this.#checkExclusive(task, source),
      onContent: (event) => onContent?.(event),
      onMount: (mount) => onMount?.(mount),
    };
  }

  async #run(key: string, signal: AbortSignal): Promise<void> {
    const task = this.#tasks.get(key);
    const entry = task === undefined ? undefined : this.#entries.get(task.uid);
    if (task !== undefined) await entry?.inTurn(this.#ports.clock, () => this.#runTask(task, signal), signal);
  }

  async #runTask(task: VolumeTask, signal: AbortSignal): Promise<void> {
    const run = task.run(signal);
    this.#inProgress.set(task.key, run);
    try {
      await run;
    } finally {
      if (this.#inProgress.get(task.key) === run) this.#inProgress.delete(task.key);
    }
  }

  #stateChanged(entry: PodEntry, task: VolumeTask): void {
    entry.stateChanged(task);
    if (!entry.isRefused || !entry.isComplete) return;
    entry.isRefused = false;
    this.#ports.onReady(entry.uid);
  }

  #checkExclusive(task: VolumeTask, source: VolumeSource): void {
    if (source.type !== "claim") return;
    const { metadata, spec } = source.persistent;
    if (spec?.accessModes?.length !== 1 || spec.accessModes[0] !== "ReadWriteOncePod") return;
    for (const other of this.#tasks.values()) {
      if (other.uid === task.uid || other.source?.type !== "claim") continue;
      if (other.state.step !== "mounted" && other.state.step !== "mounting") continue;
      if (other.source.persistent.metadata?.name !== metadata?.name) continue;
      throw new Error("volume uses the ReadWriteOncePod access mode and is already in use by another pod");
    }
  }

  async #release(uid: PodUid, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(uid);
    const tasks = [...(entry?.tasks.values() ?? [])];
    for (const task of tasks) task.end();
    await allEnded(tasks.map((task) => this.#inProgress.get(task.key)));
    for (const task of tasks) {
      this.#contentUpdates.forget(task);
      this.#tasks.delete(task.key);
    }
    this.#entries.delete(uid);
    entry?.changed();
    await releaseVolumes(uid, this.#places, this.#ports, signal);
    this.#leavingSince.delete(uid);
  }

  async #prepareSubPath(request: SubPathRequest): Promise<string> {
    const { pod, containerName, volumeName, volumePath, subPath, mountIndex } = request;
    const uid = uidOf(pod);
    const specName = this.#entries.get(uid)?.tasks.get(volumeName)?.place?.specName ?? volumeName;
    const target = join(this.#places.subPaths(uid), specName, containerName, String(mountIndex));
    const path = join(volumePath, subPath);
    await this.#ports.files.run("mountSubPath", { volumePath, subPath, target }, { path, owner: uid }, never);
    return target;
  }

  async #createSubPath({ pod, volumePath, subPath }: SubPathRequest): Promise<void> {
    const task = { path: join(volumePath, subPath), owner: uidOf(pod) };
    await this.#ports.files.run("createSubPath", { volumePath, subPath }, task, never);
  }
}
