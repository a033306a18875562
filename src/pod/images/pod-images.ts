import { join } from "node:path";
import {
  type ImageContent,
  type ImageService,
  type PodSandboxConfig,
  type RuntimeIdentity,
  untilAnswered,
} from "../../connections/cri/index.ts";
import { aFewAtOnce, type Clock, type Logger, mapAtMost, messageOf } from "../../ground/base/index.ts";
import type { AgentConfig } from "../../ground/config/index.ts";
import {
  type Container,
  type ContainerKind,
  containersOf,
  type IdentifiedPod,
  type PodLedger,
  type PodUid,
  type RecordPodEvent,
  type Secret,
  uidOf,
} from "../../ground/model/index.ts";
import { StartError, type StarterPorts } from "../runtime/index.ts";
import { CredentialPlugin, type PluginPorts } from "./credential-plugin.ts";
import { ImageAccess, type VerificationPolicy } from "./image-access.ts";
import { ImageError } from "./image-error.ts";
import {
  type ForeseenPull,
  ImagePuller,
  type ImagePullerPorts,
  type ImageRequest,
  imageOf,
  mountedImageOf,
} from "./image-puller.ts";
import { checkMountsImages, fetchMountedImages } from "./image-volumes.ts";
import { NodeCredentials } from "./node-credentials.ts";
import { loadCredentialProviders } from "./plugin-config.ts";
import { ImagePrefetch } from "./prefetch.ts";
import type { SavedBackoff } from "./pull-backoff.ts";
import { PullCredentials } from "./pull-credentials.ts";
import type { PullView } from "./pull-progress.ts";
import { PullRecords } from "./pull-records.ts";

export interface PodImagesPorts {
  readonly images: ImageService;
  /** What the runtime keeps of images and is fetching; undefined: it can't tell. */
  readonly content: ImageContent | undefined;
  /** As the runtime names itself; throws until it has. */
  readonly runtime: () => RuntimeIdentity;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  readonly ownProcess: PullProcess;
  /** A container is about to be made from the image: it must not be collected now. */
  readonly onUse: (imageId: string) => void;
  /** The pod's pull secrets as far as they can be read. */
  readonly pullSecrets: (pod: IdentifiedPod, signal: AbortSignal) => Promise<readonly Secret[]>;
  readonly runtimeHandlerOf: (pod: IdentifiedPod) => string;
  /** undefined: there is no cluster, and so no service accounts. */
  readonly serviceAccounts: PluginPorts["serviceAccounts"];
  /** Who pulled which image with what; undefined: nobody asks. */
  readonly access: ImageAccess | undefined;
  readonly metrics: {
    readonly onPull: NonNullable<ImagePullerPorts["onPull"]>;
    readonly onPlugin: NonNullable<PluginPorts["onCall"]>;
  };
}

/** An image that a pod would use, and what would be done about it. */
export interface ForeseenImageUse extends ForeseenPull, Pick<ImageRequest, "image" | "pullPolicy"> {
  /** The volume that it is mounted as; undefined: containers are made from it. */
  readonly volume: string | undefined;
}

/** What finding credentials needs of the process it runs in. */
export interface PullProcess {
  readonly workDir: string;
  readonly homeDir: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
}

/** The images that containers start from: there before they start, fetched with the pod's credentials. */
export class PodImages implements Pick<StarterPorts, "ensureImage" | "prefetchImage"> {
  readonly #config: AgentConfig;
  readonly #ports: PodImagesPorts;
  /** Named by a file that `load` reads. */
  readonly #plugins: CredentialPlugin[] = [];
  readonly #puller: ImagePuller;
  readonly #prefetch: ImagePrefetch;

  constructor(config: AgentConfig, ports: PodImagesPorts) {
    const { kubelet, gates, flags } = config;
    const { clock, log, ownProcess } = ports;
    const { workDir, homeDir } = ownProcess;
    this.#config = config;
    this.#ports = ports;
    const node = new NodeCredentials({ rootDir: flags.rootDir, workDir, homeDir }, { clock, log });
    this.#puller = new ImagePuller(
      {
        serializeImagePulls: kubelet.serializeImagePulls,
        maxParallelImagePulls: kubelet.maxParallelImagePulls,
        imagesPerRuntimeHandler: gates.enabled("RuntimeClassInImageCriApi"),
        registryPullQps: kubelet.registryPullQPS,
        registryBurst: kubelet.registryBurst,
        longestPullMs: undefined,
      },
      {
        images: ports.images,
        ...(ports.content !== undefined && { content: () => ports.content }),
        clock,
        access: ports.access,
        credentials: new PullCredentials(node, this.#plugins),
        recordEvent: ports.recordEvent,
        onUse: ports.onUse,
        onPull: ports.metrics.onPull,
      },
    );
    this.#prefetch = new ImagePrefetch(this.#puller);
  }

  /** Reads which credential providers there are; call before the first pull. */
  async load(): Promise<void> {
    const { imageCredentialProviderConfig: configPath, imageCredentialProviderBinDir: binDir } = this.#config.flags;
    if (configPath === "" && binDir === "") return;
    const { clock, log, ownProcess, serviceAccounts, metrics } = this.#ports;
    const allowTokens = this.#config.gates.enabled("KubeletServiceAccountTokenForCredentialProviders");
    const { providers } = await loadCredentialProviders({ configPath, binDir, allowTokens });
    const { environment } = ownProcess;
    const ports = { clock, log, environment, serviceAccounts, onCall: metrics.onPlugin };
    this.#plugins.push(...providers.map((provider) => new CredentialPlugin(provider, binDir, ports)));
  }

  /** The pod is over: what was remembered for its next pull is not needed. */
  forgetPod(uid: PodUid): void {
    this.#puller.backoff.forgetPod(uid);
    this.#prefetch.forgetPod(uid);
  }

  /** Pulls under way or waiting, and how far they are. */
  pulls(signal: AbortSignal): Promise<readonly PullView[]> {
    return this.#puller.pulls(signal);
  }

  /** Pulls that failed and wait for their next try. */
  backoffs(): readonly SavedBackoff[] {
    const { clock } = this.#ports;
    return this.#puller.backoff.save().filter(({ failedAt, delayMs }) => failedAt + delayMs > clock.now());
  }

  readonly prefetchImage: StarterPorts["prefetchImage"] = (pod, kind, container, sandbox, signal) => {
    // Whoever needs the image later meets the same trouble and reports it.
    this.#requestOf(pod, kind, container, sandbox, signal).then(
      (request) => this.#prefetch.begin(request, signal),
      () => {},
    );
  };

  readonly ensureImage: StarterPorts["ensureImage"] = async (pod, kind, container, sandbox, signal) => {
    const span = this.#ports.ledger.begin(uidOf(pod), "pull", container.image ?? "");
    try {
      const { imageRef, image, mounted } = await span.within(async () => {
        const request = await this.#requestOf(pod, kind, container, sandbox, signal);
        const own = await this.#prefetch.ensure(request, signal);
        const others = await fetchMountedImages(pod, container, this.#ports.runtime, async (wanted) => {
          const { imageRef: ref } = await this.#puller.ensure({ ...request, ...mountedImageOf(wanted) }, signal);
          return ref;
        });
        return { ...own, mounted: others };
      });
      span.end();
      return { ref: imageRef, uid: image.uid?.value, username: image.username, mounted };
    } catch (error) {
      span.fail(messageOf(error));
      if (!(error instanceof ImageError)) throw error;
      const { reason, message, nextTryAt } = error;
      // After a failed pull the worker comes back soon and finds the back-off, which users look for in the status.
      const planned = reason === "ImagePullBackOff" && nextTryAt !== undefined ? { nextTryAt } : {};
      throw new StartError(reason, message, { cause: error, ...planned });
    }
  };

  /** What would be done about the images of the pod, those that it mounts included; of so many at most. */
  async foresee(pod: IdentifiedPod, most: number, signal: AbortSignal): Promise<readonly ForeseenImageUse[]> {
    const runtimeHandler = this.#ports.runtimeHandlerOf(pod);
    const images = new Map<string, Pick<ForeseenImageUse, "image" | "pullPolicy" | "volume">>();
    for (const { image, pullPolicy } of containersOf(pod).map(imageOf)) {
      if (images.size < most) images.set(`${pullPolicy} ${image}`, { image, pullPolicy, volume: undefined });
    }
    for (const { name, image: mounted } of pod.spec.volumes ?? []) {
      if (mounted === undefined || images.size >= most) continue;
      const { reference = "", pullPolicy: policy } = mounted;
      const { image, pullPolicy } = mountedImageOf({ reference, pullPolicy: policy });
      images.set(`volume ${name}`, { image, pullPolicy, volume: name });
    }
    return await mapAtMost(aFewAtOnce, [...images.values()], async (use) => {
      const pull = await this.#puller.foresee({ pod, ...use, runtimeHandler }, signal);
      return { ...use, ...pull, ...(use.volume !== undefined && this.#mountProblem(use.volume)) };
    });
  }

  #mountProblem(volume: string): { readonly problem?: string } {
    try {
      checkMountsImages(volume, this.#ports.runtime());
      return {};
    } catch (error) {
      return { problem: messageOf(error) };
    }
  }

  async #requestOf(
    pod: IdentifiedPod,
    kind: ContainerKind,
    container: Container,
    sandboxConfig: PodSandboxConfig,
    signal: AbortSignal,
  ): Promise<ImageRequest> {
    return {
      pod,
      ...imageOf({ kind, container }),
      pullSecrets: await this.#ports.pullSecrets(pod, signal),
      sandboxConfig,
      runtimeHandler: this.#ports.runtimeHandlerOf(pod),
    };
  }
}

/** Who may use images that others have pulled; undefined where the gate says that everybody may. */
export function imageAccessOf(
  config: AgentConfig,
  ports: { readonly clock: Clock; readonly log: Logger },
): ImageAccess | undefined {
  if (!config.gates.enabled("KubeletEnsureSecretPulledImages")) return undefined;
  const { imagePullCredentialsVerificationPolicy: type, preloadedImagesVerificationAllowlist: allowlist } =
    config.kubelet;
  const policy: VerificationPolicy =
    type === "NeverVerifyAllowlistedImages"
      ? { type, allowlist }
      : { type: type === "" ? "NeverVerifyPreloadedImages" : type };
  return new ImageAccess(policy, { ...ports, records: new PullRecords(join(config.flags.rootDir, "image_manager")) });
}

/** Settles what a crash cut off, as soon as the runtime says which images there are. */
export async function recoverAccess(
  access: ImageAccess | undefined,
  { images, clock, log }: { readonly images: ImageService; readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  if (access === undefined) return;
  const listImages = () => images.listImages({ filter: undefined }, { signal });
  const { images: present } = await untilAnswered("which images are there", listImages, { clock, log }, signal);
  await access.recover(present.map(({ id, repoTags, repoDigests }) => ({ id, names: [...repoTags, ...repoDigests] })));
}
