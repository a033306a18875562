import { join } from "node:path";
import { type ImageService, type RuntimeService, untilAnswered } from "../../connections/cri/index.ts";
import { type Clock, CollectorLoop, type Logger, type TaskScope } from "../../ground/base/index.ts";
import type { AgentConfig } from "../../ground/config/index.ts";
import type { IdentifiedPod, RecordNodeEvent } from "../../ground/model/index.ts";
import { runtimeLabels } from "../runtime/index.ts";
import { ImageAgeFile } from "./image-ages.ts";
import { readImageFs } from "./image-fs.ts";
import { type ImageForecast, ImageGc, type ImageGcSettings } from "./image-gc.ts";
import { mountedImageNames } from "./image-volumes.ts";
import { sandboxImageOf } from "./sandbox-image.ts";

export interface ConfiguredImageGcPorts {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly onRemoved: (removal: { readonly reason: "age" | "space" }) => void;
  readonly onCollected: (imageIds: ReadonlySet<string>, before: number) => Promise<void>;
  /** Every wanted pod: images that they mount are in use although no container is made from them. */
  readonly wantedPods: () => readonly IdentifiedPod[];
}

/** Removes images that nothing uses, by age and by space. */
export class ConfiguredImageGc {
  readonly #ports: ConfiguredImageGcPorts;
  readonly #gc: ImageGc;
  /** The image that sandboxes run; undefined while the runtime has not said. */
  #sandboxImage: string | undefined;
  #isStarted = false;

  constructor(config: AgentConfig, ports: ConfiguredImageGcPorts) {
    const { flags } = config;
    const { runtime, images, clock, log } = ports;
    this.#ports = ports;
    this.#gc = new ImageGc(settingsOf(config), {
      images,
      clock,
      log,
      recordNodeEvent: ports.recordNodeEvent,
      onCollected: ports.onCollected,
      onRemoved: ports.onRemoved,
      readFs: (signal) => readImageFs(images, signal),
      keptImages: () => [
        ...(this.#sandboxImage === undefined ? [] : [this.#sandboxImage]),
        ...mountedImageNames(ports.wantedPods()),
      ],
      ages: new ImageAgeFile(join(flags.rootDir, "nodelet", "images.json")),
      imagesInUse: async (signal) => {
        const { containers } = await runtime.listContainers({ filter: undefined }, { signal });
        return new Map(
          containers.flatMap(({ imageId, imageRef, image, labels, metadata }) => {
            const pod = `${labels[runtimeLabels.podNamespace] ?? ""}/${labels[runtimeLabels.podName] ?? ""}`;
            const user = `container ${metadata?.name ?? ""} of ${pod}`;
            return [imageId, imageRef, image?.image ?? ""].map((name) => [name, user] as const);
          }),
        );
      },
    });
  }

  /** Other limits count from the next collection on. */
  configure(config: AgentConfig): void {
    this.#gc.configure(settingsOf(config));
  }

  /** A container is about to be made from the image: it must not be collected now. */
  readonly noteWanted = (imageId: string): void => this.#gc.noteWanted(imageId);

  /** Under disk pressure: removes every image that nothing uses. */
  async deleteUnused(signal: AbortSignal): Promise<void> {
    // Until it is known which image sandboxes run, it could be that one.
    if (!this.#isStarted) return;
    await this.#gc.deleteUnused(signal);
  }

  /** What a collection would do now. */
  async foresee(request: "usual" | "everything", signal: AbortSignal): Promise<ImageForecast> {
    return await this.#gc.foresee(request, signal);
  }

  /** Waits until the runtime says which image must stay, then collects for as long as the scope lives. */
  async start(scope: TaskScope): Promise<void> {
    const { runtime, clock, log } = this.#ports;
    const { signal } = scope;
    const askStatus = () => runtime.status({ verbose: true }, { signal });
    const { info } = await untilAnswered("which image sandboxes run", askStatus, { clock, log }, signal);
    this.#sandboxImage = sandboxImageOf(info);
    this.#isStarted = true;
    const loop = new CollectorLoop(this.#gc, clock);
    scope.spawn("image garbage collection", (running) => loop.run(running));
  }
}

function settingsOf({ kubelet }: AgentConfig): ImageGcSettings {
  return {
    highThresholdPercent: kubelet.imageGCHighThresholdPercent,
    lowThresholdPercent: kubelet.imageGCLowThresholdPercent,
    minimumAgeMs: kubelet.imageMinimumGCAgeMs,
    maximumAgeMs: kubelet.imageMaximumGCAgeMs,
  };
}
