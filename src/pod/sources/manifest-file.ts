import { createHash } from "node:crypto";
import { aFewAtOnce, type Clock, mapAtMost } from "../../ground/base/index.ts";
import { type IdentifiedPod, isError, type Problem } from "../../ground/model/index.ts";
import type { LastGoodManifests } from "./last-good-manifests.ts";
import type { StaticPodSettings } from "./make-static-pod.ts";
import { readManifest, stampOf } from "./manifest-listing.ts";
import { podsOfManifest } from "./manifest-pods.ts";
import type { StaticPodAdoption } from "./static-pod-adoption.ts";

/** What is known of one manifest file. */
export interface ManifestFile {
  readonly path: string;
  readonly stamp: string;
  /** Whether it had been left alone for a while when it was read: whatever is written later gives it another stamp. */
  readonly isSettled: boolean;
  readonly digest: string;
  readonly problems: readonly Problem[];
  /** The pod of the newest version that was good, which need not be the present one. */
  readonly good: GoodVersion | undefined;
}

export interface GoodVersion {
  readonly pod: IdentifiedPod;
  readonly manifest: Uint8Array;
}

export interface ManifestFileReader {
  readonly clock: Clock;
  readonly lastGood: LastGoodManifests;
  readonly settings: StaticPodSettings;
  readonly adoption: StaticPodAdoption | undefined;
}

// Whoever writes a file in pieces leaves it readable, and perhaps even valid, in between. A file that changed just now
// is believed only after it has been left alone for a moment.
const settleMs = 10;
const recentMs = 1000;
const mostRounds = 100;
/** Far more than the steps in which file systems count the time. */
const settledMs = 5_000;

/**
 * Reads manifests and says what they mean now; files that are gone are left out. All share one wait for those that
 * were written just now. Throws on abort, and while the machine lacks what it takes to read files: a pod must not be
 * stopped because of that.
 */
export async function readManifestFiles(
  paths: readonly string[],
  known: ReadonlyMap<string, ManifestFile>,
  reader: ManifestFileReader,
  signal: AbortSignal,
): Promise<readonly ManifestFile[]> {
  const done: ManifestFile[] = [];
  let pending = paths;
  for (let round = 0; pending.length > 0; round++) {
    const reads = await mapAtMost(aFewAtOnce, pending, (path) => readOnce(path, known.get(path), reader));
    const found = reads.flatMap((read) => read ?? []);
    const fresh = round < mostRounds ? found.filter(({ isFresh }) => isFresh) : [];
    done.push(...found.filter((read) => !fresh.includes(read)).map(({ file }) => file));
    if (fresh.length === 0) break;
    await reader.clock.sleep(settleMs, signal);
    const changed = await mapAtMost(aFewAtOnce, fresh, ({ file }) => hasChanged(file));
    done.push(...fresh.filter((_, index) => changed[index] === false).map(({ file }) => file));
    pending = fresh.filter((_, index) => changed[index] === true).map(({ file }) => file.path);
  }
  return done;
}

interface Read {
  readonly file: ManifestFile;
  /** Written so recently that the writer may not be done. */
  readonly isFresh: boolean;
}

async function readOnce(
  path: string,
  known: ManifestFile | undefined,
  reader: ManifestFileReader,
): Promise<Read | undefined> {
  const stamp = await stampOf(path);
  if (stamp === "absent") return undefined;
  if ("reason" in stamp) return { file: await unreadable(path, stamp.reason, known, reader), isFresh: false };
  const bytes = await readManifest(path);
  if ("reason" in bytes) return { file: await unreadable(path, bytes.reason, known, reader), isFresh: false };
  const digest = createHash("sha256").update(bytes).digest("hex");
  const changedAtMs = Math.max(stamp.modifiedAtMs, stamp.changedAtMs);
  const isSettled = Math.abs(reader.clock.now() - changedAtMs) > settledMs;
  const seen = { stamp: stamp.identity, isSettled };
  if (known?.digest === digest) return { file: { ...known, ...seen }, isFresh: false };
  const { pods, problems } = await podsOfManifest(bytes, { source: "file", path }, reader.settings);
  const pod = await adopted(pods[0], changedAtMs, reader);
  // A file that is good but holds something else has no pod any more.
  const fallback = problems.some(isError) ? await lastGood(path, known, reader) : undefined;
  const good = pod === undefined ? fallback : { pod, manifest: bytes };
  const age = Math.abs(reader.clock.now() - stamp.modifiedAtMs);
  return { file: { path, ...seen, digest, problems, good }, isFresh: age < recentMs };
}

async function hasChanged({ path, stamp }: ManifestFile): Promise<boolean> {
  const now = await stampOf(path);
  return now === "absent" || "reason" in now || now.identity !== stamp;
}

async function unreadable(
  path: string,
  reason: string,
  known: ManifestFile | undefined,
  reader: ManifestFileReader,
): Promise<ManifestFile> {
  const problem: Problem = { severity: "error", field: "", message: `Cannot read the file: ${reason}` };
  return {
    path,
    stamp: "",
    isSettled: false,
    digest: "",
    problems: [problem],
    good: await lastGood(path, known, reader),
  };
}

/** From memory, or, when this is the first look at the file, from what an earlier run of the agent saved. */
async function lastGood(
  path: string,
  known: ManifestFile | undefined,
  reader: ManifestFileReader,
): Promise<GoodVersion | undefined> {
  if (known !== undefined) return known.good;
  const manifest = await reader.lastGood.load(path);
  if (manifest === undefined) return undefined;
  const { pods } = await podsOfManifest(manifest, { source: "file", path }, reader.settings);
  // A version that is not in the file any more may only have been adopted earlier.
  const pod = await adopted(pods[0], Number.POSITIVE_INFINITY, reader);
  return pod === undefined ? undefined : { pod, manifest };
}

async function adopted(
  pod: IdentifiedPod | undefined,
  unchangedSinceMs: number,
  { adoption }: ManifestFileReader,
): Promise<IdentifiedPod | undefined> {
  return pod === undefined || adoption === undefined ? pod : adoption.adopt(pod, unchangedSinceMs);
}

export function isBroken({ problems }: ManifestFile): boolean {
  return problems.some(isError);
}
