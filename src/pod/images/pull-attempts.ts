import {
  CriError,
  type Image,
  type ImageService,
  type ImageSpec,
  type PodSandboxConfig,
} from "../../connections/cri/index.ts";
import { type Clock, formatDuration, isAbort, messageOf, TokenBucket, withDeadline } from "../../ground/base/index.ts";
import type { ImageAccess } from "./image-access.ts";
import { joinMessages } from "./image-error.ts";
import type { Credential } from "./keyring.ts";

/** The runtime could not bring the image; the message is what users see in events. */
class PullFailure extends Error {
  override readonly name = "PullFailure";
}

export interface PulledImage {
  readonly imageRef: string;
  readonly image: Image;
}

export interface PullOrder {
  readonly spec: ImageSpec;
  readonly credentials: readonly Credential[];
  readonly sandboxConfig: PodSandboxConfig | undefined;
}

export interface PullOutcome {
  readonly outcome: "pulled" | "failed";
  readonly durationMs: number;
  /** 0 unless pulled. */
  readonly sizeBytes: bigint;
}

export interface PullAttemptSettings {
  /** Pulls per second; 0: no limit. */
  readonly registryPullQps: number;
  readonly registryBurst: number;
  /** Gives up a pull that takes longer; undefined: never, as the kubelet. */
  readonly longestPullMs: number | undefined;
}

export interface PullAttemptPorts {
  readonly images: Pick<ImageService, "imageStatus" | "pullImage">;
  readonly access: ImageAccess | undefined;
  readonly clock: Clock;
  onPull(outcome: PullOutcome): void;
}

/** Carries out one pull: asks the runtime with each credential in turn until one works. */
export class PullAttempts {
  readonly #settings: PullAttemptSettings;
  readonly #ports: PullAttemptPorts;
  readonly #rate: TokenBucket | undefined;

  constructor(settings: PullAttemptSettings, ports: PullAttemptPorts) {
    this.#settings = settings;
    this.#ports = ports;
    const { registryPullQps, registryBurst } = settings;
    this.#rate = registryPullQps > 0 ? new TokenBucket(registryPullQps, registryBurst, ports.clock) : undefined;
  }

  async pull(order: PullOrder, signal: AbortSignal): Promise<PulledImage> {
    signal.throwIfAborted();
    if (this.#rate?.tryTake() === false) throw new PullFailure("pull QPS exceeded");
    const { clock, onPull } = this.#ports;
    const startedAt = clock.monotonic();
    let sizeBytes: bigint | undefined;
    try {
      const pulled = await this.#withinLimit((limited) => this.#recorded(order, limited), signal);
      sizeBytes = pulled.image.size;
      return pulled;
    } finally {
      const durationMs = clock.monotonic() - startedAt;
      if (sizeBytes !== undefined) onPull({ outcome: "pulled", durationMs, sizeBytes });
      else if (!signal.aborted) onPull({ outcome: "failed", durationMs, sizeBytes: 0n });
    }
  }

  /** Reads the image as the runtime has it, or undefined when it does not. */
  async inspect(spec: ImageSpec, signal: AbortSignal): Promise<Image | undefined> {
    return (await this.#ports.images.imageStatus({ image: spec, verbose: false }, { signal })).image;
  }

  async #recorded(order: PullOrder, signal: AbortSignal): Promise<PulledImage> {
    const { access } = this.#ports;
    const { image } = order.spec;
    await access?.pullStarts(image);
    let brought: Brought;
    try {
      brought = await this.#tryCredentials(order, signal);
    } catch (error) {
      await access?.pullFailed(image);
      throw error;
    }
    await access?.pullSucceeded(image, brought.imageRef, brought.credential);
    return { imageRef: brought.imageRef, image: await this.#inspectPulled(order.spec, signal) };
  }

  async #inspectPulled(spec: ImageSpec, signal: AbortSignal): Promise<Image> {
    let problem = "the runtime does not know it";
    try {
      const image = await this.inspect(spec, signal);
      if (image !== undefined) return image;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      problem = pullErrorText(error);
    }
    throw new PullFailure(`image "${spec.image}" was pulled, but cannot be inspected: ${problem}`);
  }

  async #tryCredentials({ spec, credentials, sandboxConfig }: PullOrder, signal: AbortSignal): Promise<Brought> {
    const failures: string[] = [];
    for (const credential of credentials.length === 0 ? [undefined] : credentials) {
      try {
        const request = { image: spec, auth: authOf(credential), sandboxConfig };
        return { imageRef: (await this.#ports.images.pullImage(request, { signal })).imageRef, credential };
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        failures.push(pullErrorText(error));
      }
    }
    throw new PullFailure(joinMessages(failures));
  }

  async #withinLimit<Result>(work: (signal: AbortSignal) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const { longestPullMs } = this.#settings;
    if (longestPullMs === undefined) return work(signal);
    const late = (): Error => new PullFailure(`the pull was given up after ${formatDuration(longestPullMs)}`);
    return withDeadline(this.#ports.clock, longestPullMs, late, signal, work);
  }
}

interface Brought {
  readonly imageRef: string;
  readonly credential: Credential | undefined;
}

function authOf(credential: Credential | undefined) {
  if (credential === undefined) return undefined;
  const { username, password } = credential;
  return { username, password, auth: "", serverAddress: "", identityToken: "", registryToken: "" };
}

/** Runtimes say nearly everything with the code Unknown; only then is the code left out of the text. */
function pullErrorText(error: unknown): string {
  if (!(error instanceof CriError)) return messageOf(error);
  return error.code === "Unknown" ? error.message : error.rpcText;
}
