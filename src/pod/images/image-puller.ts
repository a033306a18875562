import {
  CriError,
  type Image,
  type ImageContent,
  type ImageSpec,
  type PodSandboxConfig,
} from "../../connections/cri/index.ts";
import { type Clock, isAbort, messageOf } from "../../ground/base/index.ts";
import {
  defaultPullPolicy,
  fieldPathOf,
  type IdentifiedPod,
  ImageNameError,
  type PodContainer,
  type PullPolicy,
  parseImage,
  pullPolicies,
  type RecordPodEvent,
  repositoryOf,
  type Secret,
  withDefaultTag,
} from "../../ground/model/index.ts";
import type { PullingPod } from "./credential-plugin.ts";
import { explainPullFailure, ImageError } from "./image-error.ts";
import { type ImageEvent, imageEvents } from "./image-events.ts";
import type { Credential } from "./keyring.ts";
import { type PullAttemptPorts, type PullAttemptSettings, PullAttempts, type PulledImage } from "./pull-attempts.ts";
import { PullBackoff } from "./pull-backoff.ts";
import { credentialHash, PullSecretError } from "./pull-credentials.ts";
import { PullProgressReader, type PullView } from "./pull-progress.ts";
import { type PullInProgress, type PullJobResult, PullQueue } from "./pull-queue.ts";

export interface ImageRequest {
  readonly pod: IdentifiedPod;
  /** As the pod names it. */
  readonly image: string;
  readonly pullPolicy: PullPolicy;
  /** Points events at the container; undefined: they are about the pod. */
  readonly fieldPath: string | undefined;
  readonly pullSecrets: readonly Secret[];
  readonly sandboxConfig: PodSandboxConfig | undefined;
  /** Handler of the pod's RuntimeClass; empty: the runtime's default. */
  readonly runtimeHandler: string;
  /** Told when waiting for a turn and when pulling begins, for the pod's ledger. */
  onPhase?(phase: ImagePhase): void;
}

export type ForeseenRequest = Pick<ImageRequest, "pod" | "image" | "pullPolicy" | "runtimeHandler">;

/** What would be done about an image. */
export interface ForeseenPull {
  /** To be checked: the pod may use it only if it could have pulled it. Unknown: the runtime does not say. */
  readonly state: "present" | "present, to be checked" | "to be pulled" | "to be pulled anew" | "missing" | "unknown";
  /** Of the one that is there: how large one is that is not, the runtime can't tell. */
  readonly sizeBytes: number | undefined;
  /** Why the container would not start. */
  readonly problem?: string;
}

/** `ageMs`: how long the pull has been under way; more than 0 when it was begun for another pod. */
export type ImagePhase = { readonly type: "queued" } | { readonly type: "pulling"; readonly ageMs: number };

export interface ImagePullerSettings extends PullAttemptSettings {
  readonly serializeImagePulls: boolean;
  /** undefined: no limit. */
  readonly maxParallelImagePulls: number | undefined;
  /** Gate RuntimeClassInImageCriApi: images are kept apart by runtime handler. */
  readonly imagesPerRuntimeHandler: boolean;
}

export interface ImagePullerPorts extends PullAttemptPorts {
  readonly credentials: FindCredentials;
  readonly recordEvent: RecordPodEvent;
  /** A container is about to be made from this image: it must not be collected now. */
  onUse(imageId: string): void;
  /** undefined: the runtime can't tell how far a pull is. */
  readonly content?: () => ImageContent | undefined;
}

export interface FindCredentials {
  find(
    repository: string,
    pod: PullingPod,
    secrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<readonly Credential[]>;
}

/** The image and policy of a container, as `ensure` wants them. */
export function imageOf({ kind, container }: PodContainer): Pick<ImageRequest, "image" | "pullPolicy" | "fieldPath"> {
  const image = container.image ?? "";
  return {
    image,
    pullPolicy: pullPolicyOf(image, container.imagePullPolicy),
    fieldPath: fieldPathOf(kind, container.name),
  };
}

/** The same for an image that is mounted as a volume; events about it are about the pod. */
export function mountedImageOf(volume: {
  readonly reference: string;
  readonly pullPolicy: string | undefined;
}): Pick<ImageRequest, "image" | "pullPolicy" | "fieldPath"> {
  const { reference: image, pullPolicy } = volume;
  return { image, pullPolicy: pullPolicyOf(image, pullPolicy), fieldPath: undefined };
}

function pullPolicyOf(image: string, policy: string | undefined): PullPolicy {
  return pullPolicies.find((known) => known === policy) ?? defaultPullPolicy(image);
}

/** Sees to it that a container's image is on the node, pulling it when its policy says so. */
export class ImagePuller {
  readonly backoff: PullBackoff;
  readonly #settings: ImagePullerSettings;
  readonly #ports: ImagePullerPorts;
  readonly #attempts: PullAttempts;
  readonly #queue: PullQueue<PulledImage>;
  readonly #progress: PullProgressReader;

  constructor(settings: ImagePullerSettings, ports: ImagePullerPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.backoff = new PullBackoff(ports.clock);
    this.#attempts = new PullAttempts(settings, ports);
    const limit = settings.serializeImagePulls ? 1 : (settings.maxParallelImagePulls ?? Number.POSITIVE_INFINITY);
    this.#queue = new PullQueue(limit, ports.clock);
    const { clock, content = () => undefined } = ports;
    this.#progress = new PullProgressReader({ list: () => this.#queue.list(), content, clock });
  }

  /** Pulls under way or waiting, with their age. */
  list(): readonly PullInProgress[] {
    return this.#queue.list();
  }

  /** The same, and how far they are where the runtime can tell. */
  pulls(signal: AbortSignal): Promise<readonly PullView[]> {
    return this.#progress.look(signal);
  }

  /** Resolves with the image, or rejects with an ImageError. All events about it, `Error: <reason>` too, are sent. */
  async ensure(request: ImageRequest, signal: AbortSignal): Promise<PulledImage> {
    try {
      const ensured = await this.#ensure(request, signal);
      this.#ports.onUse(ensured.image.id);
      return ensured;
    } catch (error) {
      if (error instanceof ImageError) this.#announce(request, imageEvents.notStarted(error.reason));
      throw error;
    }
  }

  /** What `ensure` would begin with. The runtime is asked what it has; nothing is pulled, announced or kept. */
  async foresee(request: ForeseenRequest, signal: AbortSignal): Promise<ForeseenPull> {
    const { image, pullPolicy } = request;
    try {
      const present = await this.#attempts.inspect(this.#spec(request), signal);
      const sizeBytes = present === undefined ? undefined : Number(present.size);
      if (pullPolicy !== "Always" && present !== undefined) {
        return { state: this.#ports.access === undefined ? "present" : "present, to be checked", sizeBytes };
      }
      if (pullPolicy === "Never") return { state: "missing", sizeBytes, problem: neverMessage(image) };
      return { state: present === undefined ? "to be pulled" : "to be pulled anew", sizeBytes };
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      return { state: "unknown", sizeBytes: undefined, problem: messageOf(error) };
    }
  }

  async #ensure(request: ImageRequest, signal: AbortSignal): Promise<PulledImage> {
    const spec = this.#specOf(request);
    for (;;) {
      // With the policy Always the answer would change nothing, and a failure to answer would only be in the way.
      const present = request.pullPolicy === "Always" ? undefined : await this.#inspect(request, spec, signal);
      if (present !== undefined && (await this.#mayUse(request, spec, present, signal))) {
        const checked = this.#ports.access !== undefined;
        this.#announce(request, imageEvents.alreadyPresent(request.image, checked));
        return { imageRef: present.id, image: present };
      }
      this.#refuseNever(request);
      this.#refuseTooEarly(request);
      const outcome = await this.#pull(request, spec, signal);
      if (outcome !== "arrived") return outcome;
    }
  }

  #specOf(request: ImageRequest): ImageSpec {
    try {
      return this.#spec(request);
    } catch (error) {
      if (error instanceof ImageError) this.#announce(request, imageEvents.inspectFailed(error.message));
      throw error;
    }
  }

  #spec({ image, pod, runtimeHandler }: ForeseenRequest): ImageSpec {
    try {
      return {
        image: withDefaultTag(image),
        annotations: { ...pod.metadata.annotations },
        userSpecifiedImage: "",
        runtimeHandler: this.#settings.imagesPerRuntimeHandler ? runtimeHandler : "",
      };
    } catch (error) {
      if (!(error instanceof ImageNameError)) throw error;
      const message = `Failed to apply default image tag "${image}": ${error.message}`;
      throw new ImageError("InvalidImageName", message, { cause: error });
    }
  }

  async #inspect(request: ImageRequest, spec: ImageSpec, signal: AbortSignal): Promise<Image | undefined> {
    try {
      return await this.#attempts.inspect(spec, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      // The kubelet prints the image id here, which is not known yet; users search for this text.
      const message = `Failed to inspect image "": ${error instanceof CriError ? error.rpcText : messageOf(error)}`;
      this.#announce(request, imageEvents.inspectFailed(message));
      throw new ImageError("ImageInspectError", message, { cause: error });
    }
  }

  async #mayUse(request: ImageRequest, spec: ImageSpec, present: Image, signal: AbortSignal): Promise<boolean> {
    const { access } = this.#ports;
    if (access === undefined) return true;
    try {
      return await access.mayUse(spec.image, present.id, () => this.#credentialsFor(request, signal));
    } catch (error) {
      if (error instanceof PullSecretError) return false;
      throw error;
    }
  }

  #refuseNever(request: ImageRequest): void {
    if (request.pullPolicy !== "Never") return;
    const message = neverMessage(request.image);
    this.#announce(request, imageEvents.neverPull(message));
    throw new ImageError("ErrImageNeverPull", message);
  }

  #refuseTooEarly(request: ImageRequest): void {
    const { pod, image } = request;
    const failure = this.backoff.waiting(pod.metadata.uid, image);
    if (failure === undefined) return;
    const event = imageEvents.backOff(image);
    this.#announce(request, event);
    const message = `${event.message}: ${failure.reason}: ${failure.message}`;
    throw new ImageError("ImagePullBackOff", message, { nextTryAt: failure.until });
  }

  async #pull(request: ImageRequest, spec: ImageSpec, signal: AbortSignal): Promise<PulledImage | "arrived"> {
    const { clock } = this.#ports;
    const startedAt = clock.monotonic();
    this.#announce(request, imageEvents.pulling(request.image));
    let outcome: PullJobResult<PulledImage>;
    const over = new AbortController();
    const told = this.#tellProgress(request, spec, over.signal);
    try {
      outcome = await this.#enqueue(request, spec, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      throw this.#failed(request, error);
    } finally {
      over.abort();
      await told;
    }
    if (outcome.type === "arrived") return "arrived";
    const { result, durationMs } = outcome;
    const withWaitingMs = clock.monotonic() - startedAt;
    this.#announce(request, imageEvents.pulled(request.image, durationMs, withWaitingMs, result.image.size));
    this.backoff.prune();
    return result;
  }

  /** Says now and then how far a long pull is. */
  async #tellProgress(request: ImageRequest, { image }: ImageSpec, over: AbortSignal): Promise<void> {
    if (this.#ports.content === undefined) return;
    while (await sleptThrough(this.#ports.clock, progressEveryMs, over)) {
      const pulls = await this.#progress.look(over).catch(() => []);
      const mine = pulls.find((pull) => pull.image === image && pull.podUids.includes(request.pod.metadata.uid));
      if (over.aborted || mine?.progress === undefined) continue;
      this.#announce(request, imageEvents.underWay(request.image, mine.progress));
    }
  }

  async #enqueue(request: ImageRequest, spec: ImageSpec, signal: AbortSignal): Promise<PullJobResult<PulledImage>> {
    const credentials = await this.#credentialsFor(request, signal);
    const { clock, access } = this.#ports;
    const { sandboxConfig } = request;
    return await this.#queue.run(
      {
        key: pullKey(spec, credentials),
        image: spec.image,
        podUid: request.pod.metadata.uid,
        // Where credentials are verified, a present image is not yet one this pod may use.
        onceArrived: request.pullPolicy === "IfNotPresent" && access === undefined ? "use" : "pull",
        pull: (jobSignal) => this.#attempts.pull({ spec, credentials, sandboxConfig }, jobSignal),
        onStart: (pullStartedAt) => request.onPhase?.({ type: "pulling", ageMs: clock.monotonic() - pullStartedAt }),
        onQueued: () => request.onPhase?.({ type: "queued" }),
      },
      signal,
    );
  }

  #credentialsFor({ image, pod, pullSecrets }: ImageRequest, signal: AbortSignal): Promise<readonly Credential[]> {
    const { namespace, name, uid } = pod.metadata;
    const serviceAccountName = pod.spec.serviceAccountName ?? "";
    const repository = repositoryOf(parseImage(image));
    return this.#ports.credentials.find(repository, { namespace, name, uid, serviceAccountName }, pullSecrets, signal);
  }

  #failed(request: ImageRequest, error: unknown): ImageError {
    const { image, pod } = request;
    const text = messageOf(error);
    this.#announce(request, imageEvents.pullFailed(image, text));
    const { reason, message } = explainPullFailure(image, text);
    const nextTryAt = this.backoff.failed(pod.metadata.uid, image, { reason, message });
    return new ImageError(reason, message, { cause: error, nextTryAt });
  }

  #announce({ pod, fieldPath }: Pick<ImageRequest, "pod" | "fieldPath">, event: ImageEvent): void {
    this.#ports.recordEvent(pod, fieldPath === undefined ? event : { ...event, fieldPath });
  }
}

function neverMessage(image: string): string {
  return `Container image "${image}" is not present with pull policy of Never`;
}

const progressEveryMs = 30_000;

/** False: it was woken by the abort. */
async function sleptThrough(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal);
    return true;
  } catch {
    return false;
  }
}

/** containerd picks the snapshotter of a pull by this annotation, so pulls that differ in it are not the same. */
const handlerAnnotation = "io.containerd.cri.runtime-handler";

function pullKey(spec: ImageSpec, credentials: readonly Credential[]): string {
  const { image, runtimeHandler, annotations } = spec;
  return JSON.stringify([image, runtimeHandler, annotations[handlerAnnotation] ?? "", credentials.map(credentialHash)]);
}
