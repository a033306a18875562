import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { WalkTurns } from "../../../connections/host/index.ts";
import type { Clock, Logger } from "../../../ground/base/index.ts";
import type { RecordPodEvent, ResourceAmounts, Volume } from "../../../ground/model/index.ts";
import { writeAtomically } from "../content/atomic-writer.ts";
import type { Content } from "../content/content.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import { ObjectReadError, type Objects } from "../objects/ports.ts";
import type { TokenManager } from "../objects/service-account-tokens.ts";
import type { TrustBundles } from "../objects/trust-bundles.ts";
import { usageByCounting } from "../stats/disk-usage.ts";
import { memorySize, type NodeMemory } from "./empty-dir.ts";
import { giveToPodGroup } from "./fs-group.ts";
import type { Need, SetUpContext, VolumeKind, WantedVolume } from "./kind.ts";
import { nestedMountPoints } from "./nested-mount-points.ts";
import { isScratchReady, makeScratch, markScratchReady, removeScratch, type ScratchMedium } from "./scratch.ts";

export interface ContentKindPorts extends NodeMemory {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly recordEvent: RecordPodEvent;
  readonly nodeAllocatable: () => ResourceAmounts;
  /** Undefined: there is neither an API server nor a local place for objects. */
  readonly objects: Objects | undefined;
  readonly tokens: TokenManager;
  /** Undefined: the gate is off, or there is no API server. */
  readonly trustBundles: TrustBundles | undefined;
  readonly walks: WalkTurns;
  readonly files: VolumeFiles;
}

export interface ContentKindSpec {
  readonly plugin: string;
  readonly handles: (volume: Volume) => boolean;
  /** Secrets must not reach a disk; config maps may, and are counted as the pod's storage there. */
  readonly medium: "memory" | "disk";
  needs(wanted: WantedVolume, volume: Volume): readonly Need[];
  content(wanted: WantedVolume, volume: Volume, context: SetUpContext, signal: AbortSignal): Promise<Content>;
  onRemoved?(uid: string): void;
  /** The volume without what must not be asked for only to look, and what that is. */
  readonly lookable?: (volume: Volume) => { readonly volume: Volume; readonly note?: string };
}

/** Volumes whose files are made from API objects or the pod itself, and follow their changes. */
export function contentKind(spec: ContentKindSpec, ports: ContentKindPorts): VolumeKind {
  /** By directory: what this run of the agent has written there last. */
  const written = new Map<string, string>();
  return {
    plugin: spec.plugin,
    matches: (source) => source.type === "inline" && spec.handles(source.volume),
    needs: (wanted) => spec.needs(wanted, inline(wanted)),
    async foresee(wanted, signal) {
      const { volume, note } = spec.lookable?.(inline(wanted)) ?? { volume: inline(wanted) };
      const content = await spec.content(wanted, volume, justLooking, signal);
      const objects = spec
        .needs(wanted, volume)
        .map((need) => ("name" in need ? `${need.kind} ${need.name}` : need.kind));
      const from = `${objects.length === 0 ? "the pod itself" : objects.join(", ")}: ${content.size} files`;
      return note === undefined ? { from } : { from, note };
    },
    async setUp(wanted, context, signal) {
      const { directory } = wanted;
      // Read first: a volume whose objects are missing leaves nothing behind.
      const content = await spec.content(wanted, inline(wanted), context, signal);
      const medium: ScratchMedium =
        spec.medium === "disk"
          ? { type: "disk" }
          : { type: "memory", sizeBytes: memorySize(wanted.pod, ports, undefined) };
      const scratch = { place: wanted, wrapped: true };
      const digest = digestOf(content);
      const last = written.get(directory);
      const isNew = last === undefined && !(await isScratchReady(scratch, medium));
      try {
        if (isNew) {
          await makeScratch(wanted, medium);
          await markScratchReady(scratch);
        }
        await makeNestedMountPoints(wanted);
        const give = (): Promise<void> =>
          giveToPodGroup(
            { wanted, path: directory, readOnly: true, policy: "Always", isOurs: true },
            context,
            ports,
            signal,
          );
        const result = await writeAtomically(directory, content, {
          now: () => ports.clock.now(),
          random: ports.random,
          isKnownToDiffer: last !== undefined && last !== digest,
          beforeSwap: give,
        });
        written.set(directory, digest);
        return {
          volume: { type: "filesystem", hostPath: directory, readOnly: true, relabel: true },
          content: result,
        };
      } catch (error) {
        written.delete(directory);
        if (isNew && context.isFirst) await removeScratch(scratch, ports.files.mountWork(wanted.uid, signal));
        throw error;
      }
    },
    measure: ({ directory }, signal) => usageByCounting(directory, ports.walks, signal),
    async tearDown(place, signal) {
      written.delete(place.directory);
      await removeScratch({ place, wrapped: true }, ports.files.mountWork(place.uid, signal));
      spec.onRemoved?.(place.uid);
    },
  };
}

export function objectsOf({ objects }: Pick<ContentKindPorts, "objects">): Objects {
  if (objects !== undefined) return objects;
  throw new ObjectReadError("not supported due to running kubelet in standalone mode");
}

export function requiredMode(mode: number | undefined): number {
  if (mode === undefined) throw new Error("no defaultMode used, not even the default value for it");
  return mode;
}

const justLooking: SetUpContext = { isFirst: true, progress() {}, againAt() {} };

function digestOf(content: Content): string {
  const hash = createHash("sha256");
  for (const [path, { bytes }] of content) hash.update(`${path.length}:${path}:${bytes.byteLength}:`).update(bytes);
  return hash.digest("base64");
}

function inline({ source }: WantedVolume): Volume {
  if (source.type !== "inline") throw new Error("a volume from API objects is never behind a claim");
  return source.volume;
}

/** Other volumes may be mounted inside this one, which the container sees read-only: the runtime could not make room. */
async function makeNestedMountPoints({ pod, name, directory }: WantedVolume): Promise<void> {
  for (const inside of nestedMountPoints(pod, name)) {
    await mkdir(join(directory, inside), { recursive: true, mode: 0o755 });
  }
}
