import { join } from "node:path";
import { type ImageService, type RuntimeService, untilAnswered } from "../connections/cri/index.ts";
import { type Clock, type Logger, Pause, type TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { RecordNodeEvent } from "../ground/model/index.ts";
import { ImageAgeFile, ImageGc, readImageFs, sandboxImageOf } from "../pod/images/index.ts";

/** A collector that knows itself when it wants to run next. */
interface Collector {
  /** On the scale of the clock that is never set. */
  readonly nextCheckAt: number;
  collect(signal: AbortSignal): Promise<void>;
}

/** Runs a collector whenever it is due; the returned function says that it may be due earlier than it thought. */
export function keepCollecting(name: string, collector: Collector, clock: Clock, scope: TaskScope): () => void {
  const pause = new Pause(clock);
  scope.spawn(name, async (signal) => {
    while (!signal.aborted) {
      const waitMs = collector.nextCheckAt - clock.monotonic();
      if (waitMs > 0) await pause.wait(waitMs, signal);
      else await collector.collect(signal);
    }
  });
  return () => pause.cutShort();
}

export interface ImageCollectionParts {
  readonly config: AgentConfig;
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly onRemoved: (removal: { readonly reason: "age" | "space" }) => void;
  readonly onCollected: (imageIds: ReadonlySet<string>, before: number) => Promise<void>;
  /** Names of images that pods mount as volumes. */
  readonly mountedImages: () => readonly string[];
}

/** Removes images that nothing uses, by age and by space, for as long as the scope lives. */
export async function startImageCollection(parts: ImageCollectionParts, scope: TaskScope): Promise<ImageGc> {
  const { config, runtime, images, clock, log } = parts;
  const { kubelet, flags } = config;
  const { signal } = scope;
  const askStatus = () => runtime.status({ verbose: true }, { signal });
  const { info } = await untilAnswered("which image sandboxes run", askStatus, { clock, log }, signal);
  const sandboxImage = sandboxImageOf(info);
  const collector = new ImageGc(
    {
      highThresholdPercent: kubelet.imageGCHighThresholdPercent,
      lowThresholdPercent: kubelet.imageGCLowThresholdPercent,
      minimumAgeMs: kubelet.imageMinimumGCAgeMs,
      maximumAgeMs: kubelet.imageMaximumGCAgeMs,
    },
    {
      images,
      clock,
      log,
      recordNodeEvent: parts.recordNodeEvent,
      onCollected: parts.onCollected,
      onRemoved: parts.onRemoved,
      readFs: (signal) => readImageFs(images, signal),
      keptImages: () => [...(sandboxImage === undefined ? [] : [sandboxImage]), ...parts.mountedImages()],
      ages: new ImageAgeFile(join(flags.rootDir, "nodelet", "images.json")),
      imagesInUse: async (signal) => {
        const { containers } = await runtime.listContainers({ filter: undefined }, { signal });
        return new Set(containers.flatMap(({ imageId, imageRef, image }) => [imageId, imageRef, image?.image ?? ""]));
      },
    },
  );
  keepCollecting("image garbage collection", collector, clock, scope);
  return collector;
}
