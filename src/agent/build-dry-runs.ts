import { readDuration } from "../ground/base/index.ts";
import { DryRunQuestionError, drainDryRun, evictionDryRun, pretendedSignals } from "../node/eviction/index.ts";
import type { DryRun, DryRuns } from "../node/server/index.ts";
import type { ForeseenImage, ImageForecast } from "../pod/images/index.ts";
import type { AgentParts } from "./build-agent.ts";

/** What the agent would do, asked through the local socket: the same planners, and nothing is done. */
export function buildDryRuns({
  eviction,
  images,
  engine,
  sight,
  volumes,
}: Pick<AgentParts, "eviction" | "images" | "engine" | "sight" | "volumes">): DryRuns {
  return new Map<string, DryRun>([
    [
      "evict",
      async (question, signal) => {
        const pretended = pretendedSignals(question.getAll("signal"));
        const situation = await eviction.manager.situation(pretended, signal);
        const { freedBytes } = await images.collection.foresee("everything", signal);
        const reclaimable = new Map([["images", { bytes: Number(freedBytes), inodes: 0 }]] as const);
        return evictionDryRun(situation, pretended, reclaimable);
      },
    ],
    [
      "gc",
      async (question, signal) => {
        const request = question.has("all") ? "everything" : "usual";
        // Whoever names no part wants them all.
        const isWanted = (part: CollectedPart): boolean =>
          question.has(part) || !collectedParts.some((each) => question.has(each));
        return {
          apiVersion: "nodelet.dev/v1",
          kind: "GarbageCollectionDryRun",
          ...(isWanted("images") && { images: imagesShown(await images.collection.foresee(request, signal)) }),
          ...(isWanted("containers") && { containers: await engine.gc.foresee(request, signal) }),
          ...(isWanted("logs") && { logs: await engine.gc.foreseeLogs(signal) }),
          ...(isWanted("pods") && { pods: await leftDirectories(sight, volumes, signal) }),
        };
      },
    ],
    ["drain", async (question) => drainDryRun(sight.table.pods(), secondsOf(question.get("timeout")))],
  ]);
}

const collectedParts = ["images", "containers", "logs", "pods"] as const;
type CollectedPart = (typeof collectedParts)[number];

/** Of pods that are gone; none while not every pod is known. */
async function leftDirectories(
  sight: AgentParts["sight"],
  { volumes }: AgentParts["volumes"],
  signal: AbortSignal,
): Promise<readonly { readonly uid: string }[]> {
  const known = await sight.podsInUse(signal);
  return known === undefined ? [] : (await volumes.orphanedDirectories(known)).map((uid) => ({ uid }));
}

/** JSON has no numbers of that size. */
function imagesShown({ goes, stays, freedBytes, wantedBytes }: ImageForecast) {
  const shown = <Image extends ForeseenImage>(image: Image) => ({ ...image, sizeBytes: Number(image.sizeBytes) });
  return {
    goes: goes.map(shown),
    stays: stays.map(shown),
    freedBytes: Number(freedBytes),
    wantedBytes: Number(wantedBytes),
  };
}

function secondsOf(text: string | null): number | undefined {
  if (text === null) return undefined;
  const read = readDuration(text);
  if ("problem" in read || read.ms < 0) {
    throw new DryRunQuestionError(`timeout wants a duration such as 5m, found "${text}"`);
  }
  return read.ms / 1000;
}
