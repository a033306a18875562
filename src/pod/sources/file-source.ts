import { basename, dirname, join } from "node:path";
import { aFewAtOnce, isShortage, mapAtMost, messageOf, Pause } from "../../ground/base/index.ts";
import type { IdentifiedPod, Problem } from "../../ground/model/index.ts";
import { DirectoryWatch } from "./directory-watch.ts";
import { type ForeseenManifest, foreseeManifest } from "./foreseen-manifest.ts";
import { LastGoodManifests } from "./last-good-manifests.ts";
import type { StaticPodSettings } from "./make-static-pod.ts";
import { isBroken, type ManifestFile, type ManifestFileReader, readManifestFiles } from "./manifest-file.ts";
import { listManifests, type ManifestListing, stampOf } from "./manifest-listing.ts";
import { type Candidate, resolveConflicts } from "./name-conflicts.ts";
import type { SourcePorts } from "./ports.ts";
import { ProblemReports } from "./problem-reports.ts";
import { notRemovedYet, removedByNotice } from "./removed-manifests.ts";
import type { StaticPodAdoption } from "./static-pod-adoption.ts";

export interface FileSourceSettings extends StaticPodSettings {
  /** A directory with one pod per file, or one file. */
  readonly path: string;
  /** How often everything is looked at again, in case the kernel's notices got lost or do not exist (network mounts). */
  readonly checkFrequencyMs: number;
  /** Where the last good version of each manifest is kept. */
  readonly lastGoodDirectory: string;
  /** Lets pods that another agent started from these files go on. */
  readonly adoption?: StaticPodAdoption;
}

const firstWatchRetryMs = 1000;
const shortageMs = 1000;
const longestWatchRetryMs = 20_000;

/**
 * Pods from manifest files. Changes are seen at once through the kernel's notices and, at the latest, with the next
 * check. A manifest that turns bad never stops its pod: the last good version stays until the file is good again or
 * gone, also over a restart of the agent.
 */
export class FileSource {
  readonly #settings: FileSourceSettings;
  readonly #ports: SourcePorts;
  readonly #path: string;
  readonly #reader: ManifestFileReader;
  readonly #lastGood: LastGoodManifests;
  readonly #reports: ProblemReports;
  readonly #pause: Pause;
  /** Names in the watched directory that changed since the last scan. */
  #changed = new Set<string>();
  #files = new Map<string, ManifestFile>();
  #skipped: ReadonlySet<string> = new Set();
  #delivered: ReadonlyMap<string, IdentifiedPod> | undefined;
  #watchRetryMs = firstWatchRetryMs;
  #isSingleFile = false;
  #pathState: "unknown" | ManifestListing["type"] = "unknown";

  constructor(settings: FileSourceSettings, ports: SourcePorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#path = settings.path.replace(/(?<=.)\/+$/, "");
    this.#lastGood = new LastGoodManifests(settings.lastGoodDirectory, "file", ports.log);
    this.#reader = {
      clock: ports.clock,
      lastGood: this.#lastGood,
      settings,
      adoption: settings.adoption,
    };
    this.#reports = new ProblemReports(ports.reportProblem);
    this.#pause = new Pause(ports.clock);
  }

  async run(signal: AbortSignal): Promise<never> {
    const { clock } = this.#ports;
    const watch = new DirectoryWatch((name) => {
      if (this.#ignores(name)) return;
      this.#changed.add(name);
      this.#pause.cutShort();
    });
    try {
      let checkedAt = Number.NEGATIVE_INFINITY;
      for (;;) {
        signal.throwIfAborted();
        // The watch must stand before the scan: what changes in between is then noticed.
        const retryMs = await this.#watch(watch);
        const isCheckDue = clock.monotonic() - checkedAt >= this.#settings.checkFrequencyMs;
        if (isCheckDue) checkedAt = clock.monotonic();
        const changed = this.#changed;
        this.#changed = new Set();
        await this.#forget(watch.removed(), signal);
        const mustRead = (file: ManifestFile): boolean =>
          changed.has(basename(file.path)) || (isCheckDue && !file.isSettled);
        if (!(await this.#scanned(mustRead, signal))) {
          await clock.sleep(shortageMs, signal);
          for (const name of changed) this.#changed.add(name);
          checkedAt = Number.NEGATIVE_INFINITY;
          continue;
        }
        if (this.#changed.size > 0) continue;
        const nextCheckMs = checkedAt + this.#settings.checkFrequencyMs - clock.monotonic();
        await this.#pause.wait(Math.min(nextCheckMs, retryMs), signal);
      }
    } finally {
      watch.close();
    }
  }

  /** What a file of this name and content would come to beside the others. It is neither read nor written. */
  async foresee(name: string, bytes: Uint8Array): Promise<ForeseenManifest> {
    const path = this.#isSingleFile ? this.#path : join(this.#path, name);
    const foreseen = await foreseeManifest(bytes, path, this.#settings);
    if (foreseen.pod === undefined) return foreseen;
    const running = this.#delivered ?? new Map<string, IdentifiedPod>();
    const candidates = this.#candidates(running).filter((file) => file.path !== path);
    const own = { path, pod: foreseen.pod, running: running.get(path) };
    const conflict = resolveConflicts([...candidates, own].sort((a, b) => (a.path < b.path ? -1 : 1))).refused.get(
      path,
    );
    return {
      ...foreseen,
      ...(conflict === undefined ? {} : { pod: undefined, problems: [...foreseen.problems, conflict] }),
      replaces: running.get(path),
    };
  }

  #candidates(running: ReadonlyMap<string, IdentifiedPod>): readonly Candidate[] {
    return [...this.#files.values()].flatMap(({ path, good }) =>
      good === undefined ? [] : [{ path, pod: good.pod, running: running.get(path) }],
    );
  }

  /** Notices about our neighbours when a single file is watched through its directory, and about hidden files. */
  #ignores(name: string): boolean {
    if (name === "") return false;
    return this.#isSingleFile ? name !== basename(this.#path) : name.startsWith(".");
  }

  /** Returns how long to wait at most before the watch must be tried again. */
  async #watch(watch: DirectoryWatch): Promise<number> {
    const found = await stampOf(this.#path);
    this.#isSingleFile = found !== "absent" && !("reason" in found);
    // A single file is watched through its directory: editors put a new file in its place.
    const directory = this.#isSingleFile ? dirname(this.#path) : this.#path;
    try {
      if ((await watch.ensure(directory)) === "newly watched") this.#changed.add("");
      this.#watchRetryMs = firstWatchRetryMs;
      return Number.POSITIVE_INFINITY;
    } catch (error) {
      if (this.#pathState === "missing" || this.#pathState === "unknown") return firstWatchRetryMs;
      const retryMs = this.#watchRetryMs;
      this.#watchRetryMs = Math.min(retryMs * 2, longestWatchRetryMs);
      this.#ports.log.warn("Cannot watch the manifests, changes are seen with the next check", {
        path: directory,
        reason: messageOf(error),
        retryMs,
      });
      return retryMs;
    }
  }

  /** A file that was deleted took its pod with it. Read again, it is a file like any other. */
  async #forget(deletedNames: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const removed = removedByNotice(this.#files, deletedNames);
    if (removed.length === 0 || this.#delivered === undefined) return;
    for (const path of removed) this.#files.delete(path);
    await this.#publish(signal);
  }

  /** False: the machine lacks what it takes to read files. That says nothing about the pods: they stay. */
  async #scanned(mustRead: (file: ManifestFile) => boolean, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#scan(mustRead, signal);
      return true;
    } catch (error) {
      if (!isShortage(error)) throw error;
      this.#noteListing({ type: "unreadable", reason: messageOf(error) });
      return false;
    }
  }

  async #scan(mustRead: (file: ManifestFile) => boolean, signal: AbortSignal): Promise<void> {
    const listing = await listManifests(this.#path);
    this.#noteListing(listing);
    // What cannot be looked at says nothing about the pods: they stay.
    if (listing.type === "unreadable") return;
    const listed = listing.type === "missing" ? [] : listing.files;
    const unchanged = await mapAtMost(aFewAtOnce, listed, (path) => this.#unchanged(path, mustRead));
    const files = new Map(unchanged.flatMap((file) => (file === undefined ? [] : [[file.path, file]])));
    const toRead = listed.filter((path) => !files.has(path));
    for (const file of await this.#read(toRead, signal)) files.set(file.path, file);
    const ports = { clock: this.#ports.clock, read: this.#read.bind(this) };
    for (const file of await notRemovedYet(this.#files, files, ports, signal)) files.set(file.path, file);
    this.#files = new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
    await this.#publish(signal);
  }

  #read(paths: readonly string[], signal: AbortSignal): Promise<readonly ManifestFile[]> {
    return readManifestFiles(paths, this.#files, this.#reader, signal);
  }

  /** What is known of a file that need not be read again. */
  async #unchanged(path: string, mustRead: (file: ManifestFile) => boolean): Promise<ManifestFile | undefined> {
    const known = this.#files.get(path);
    if (known === undefined || mustRead(known)) return undefined;
    const stamp = await stampOf(path);
    return stamp !== "absent" && !("reason" in stamp) && stamp.identity === known.stamp ? known : undefined;
  }

  async #publish(signal: AbortSignal): Promise<void> {
    const isFirst = this.#delivered === undefined;
    const before = this.#delivered ?? (await this.#deliveredByEarlierRun());
    const { chosen, refused } = resolveConflicts(this.#candidates(before));
    const wanted = new Map([...chosen].sort(([a], [b]) => (a < b ? -1 : 1)));
    this.#reportFiles(wanted, refused);
    if (isFirst || !samePods(before, wanted)) await this.#ports.deliver([...wanted.values()], signal);
    this.#delivered = wanted;
    for (const { path, good } of this.#files.values()) {
      const isNew = good !== undefined && wanted.get(path) === good.pod && (isFirst || before.get(path) !== good.pod);
      if (isNew) await this.#lastGood.save(path, good.manifest);
    }
    if (isFirst) await this.#lastGood.keepOnly(new Set(this.#files.keys()));
    else for (const path of before.keys()) if (!this.#files.has(path)) await this.#lastGood.remove(path);
  }

  /** What was saved by an earlier run tells which files had a pod then. */
  async #deliveredByEarlierRun(): Promise<ReadonlyMap<string, IdentifiedPod>> {
    const delivered = new Map<string, IdentifiedPod>();
    for (const { path, good } of this.#files.values()) {
      if (good !== undefined && (await this.#lastGood.has(path))) delivered.set(path, good.pod);
    }
    return delivered;
  }

  #reportFiles(wanted: ReadonlyMap<string, IdentifiedPod>, refused: ReadonlyMap<string, Problem>): void {
    for (const file of this.#files.values()) {
      const { path } = file;
      const conflict = refused.get(path);
      const pod = wanted.get(path);
      const isKept = pod !== undefined && (conflict !== undefined || isBroken(file));
      this.#reports.tell({
        source: "file",
        file: path,
        problems: conflict === undefined ? file.problems : [...file.problems, conflict],
        keeping: isKept ? [pod] : [],
      });
    }
    for (const path of this.#reports.reported()) {
      if (this.#files.has(path) || path === this.#path) continue;
      this.#reports.tell({ source: "file", file: path, problems: [], keeping: [] });
    }
  }

  /** Logs and reports what changed about the path as a whole. */
  #noteListing(listing: ManifestListing): void {
    const { log } = this.#ports;
    if (listing.type === "missing" && this.#pathState !== "missing") {
      log.error("Unable to read manifests", new Error("path does not exist, ignoring"), { path: this.#path });
    }
    this.#pathState = listing.type;
    if (listing.type === "manifests") {
      for (const path of listing.skipped) {
        if (!this.#skipped.has(path)) log.warn("Skipping something among the manifests that is not a file", { path });
      }
      this.#skipped = new Set(listing.skipped);
      if (this.#files.has(this.#path) || listing.files.includes(this.#path)) return;
    }
    const problems: readonly Problem[] =
      listing.type === "unreadable"
        ? [{ severity: "error", field: "", message: `Cannot read the manifests: ${listing.reason}` }]
        : [];
    const keeping = listing.type === "unreadable" ? [...(this.#delivered?.values() ?? [])] : [];
    this.#reports.tell({ source: "file", file: this.#path, problems, keeping });
  }
}

function samePods(a: ReadonlyMap<string, IdentifiedPod>, b: ReadonlyMap<string, IdentifiedPod>): boolean {
  return a.size === b.size && [...a].every(([path, pod]) => b.get(path) === pod);
}
