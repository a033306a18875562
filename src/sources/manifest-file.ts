import { createHash } from "node:crypto";
import type { Clock } from "../base/index.ts";
import { type IdentifiedPod, isError, type Problem } from "../model/index.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { type FileStamp, readManifest, stampOf } from "./manifest-listing.ts";
import { podsOfManifest } from "./manifest-pods.ts";
import type { StaticPodSettings } from "./static-pod.ts";

/** What is known of one manifest file. */
export interface ManifestFile {
  readonly path: string;
  readonly stamp: string;
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
  readonly checkpoints: Checkpoints;
  readonly settings: StaticPodSettings;
}

// Whoever writes a file in pieces leaves it readable, and perhaps even valid, in between. A file that changed just now
// is believed only after it has been left alone this long.
const settleMs = 10;
const recentMs = 1000;
const mostRounds = 100;

/** Reads a manifest and says what it means now; undefined when the file is gone. Never throws except on abort. */
export async function readManifestFile(
  path: string,
  known: ManifestFile | undefined,
  reader: ManifestFileReader,
  signal: AbortSignal,
): Promise<ManifestFile | undefined> {
  for (let round = 0; ; round++) {
    const stamp = await stampOf(path);
    if (stamp === "absent") return undefined;
    if ("reason" in stamp) return unreadable(path, stamp.reason, known, reader);
    const bytes = await readManifest(path);
    if ("reason" in bytes) return unreadable(path, bytes.reason, known, reader);
    const digest = createHash("sha256").update(bytes).digest("hex");
    if (known !== undefined && known.digest === digest) return { ...known, stamp: stamp.identity };
    const { pods, problems } = await podsOfManifest(bytes, { source: "file", path }, reader.settings);
    if (round < mostRounds && !(await isSettled(path, stamp, reader.clock, signal))) continue;
    const [pod] = pods;
    const good = pod === undefined ? await lastGood(path, known, reader) : { pod, manifest: bytes };
    return { path, stamp: stamp.identity, digest, problems, good };
  }
}

async function isSettled(path: string, stamp: FileStamp, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const age = clock.now() - stamp.modifiedAtMs;
  if (age > recentMs || age < -recentMs) return true;
  await clock.sleep(settleMs, signal);
  const again = await stampOf(path);
  return again === "absent" || "reason" in again || again.identity === stamp.identity;
}

async function unreadable(
  path: string,
  reason: string,
  known: ManifestFile | undefined,
  reader: ManifestFileReader,
): Promise<ManifestFile> {
  const problem: Problem = { severity: "error", field: "", message: `Cannot read the file: ${reason}` };
  return { path, stamp: "", digest: "", problems: [problem], good: await lastGood(path, known, reader) };
}

/** From memory, or, when this is the first look at the file, from what an earlier run of the agent saved. */
async function lastGood(
  path: string,
  known: ManifestFile | undefined,
  { checkpoints, settings }: ManifestFileReader,
): Promise<GoodVersion | undefined> {
  if (known !== undefined) return known.good;
  const manifest = await checkpoints.load(path);
  if (manifest === undefined) return undefined;
  const { pods } = await podsOfManifest(manifest, { source: "file", path }, settings);
  const [pod] = pods;
  return pod === undefined ? undefined : { pod, manifest };
}

export function isBroken({ problems }: ManifestFile): boolean {
  return problems.some(isError);
}
