import { join } from "node:path";
import {
  type ImageService,
  type PodSandboxConfig,
  type RuntimeIdentity,
  untilAnswered,
} from "../connections/cri/index.ts";
import { type Clock, type Ledger, type Logger, messageOf } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import {
  type Container,
  type ContainerKind,
  type IdentifiedPod,
  type PodUid,
  type RecordPodEvent,
  type Secret,
  uidOf,
} from "../ground/model/index.ts";
import {
  CredentialPlugin,
  Credentials,
  ImageAccess,
  ImageError,
  ImagePrefetch,
  ImagePuller,
  type ImageRequest,
  imageOf,
  loadCredentialProviders,
  mountedImageOf,
  NodeCredentials,
  PullRecords,
  type ServiceAccounts,
  type VerificationPolicy,
} from "../pod/images/index.ts";
import { StartError, type StarterPorts } from "../pod/runtime/index.ts";
import { fetchMountedImages } from "./image-volumes.ts";
import type { ImageMetrics } from "./metrics/index.ts";

export interface ImageParts {
  readonly config: AgentConfig;
  readonly images: ImageService;
  readonly runtime: RuntimeIdentity;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: Ledger<PodUid>;
  readonly recordEvent: RecordPodEvent;
  readonly surroundings: ProcessSurroundings;
  /** A container is about to be made from the image: it must not be collected now. */
  readonly onUse: (imageId: string) => void;
  /** The pod's pull secrets as far as they can be read. */
  readonly pullSecrets: (pod: IdentifiedPod, signal: AbortSignal) => Promise<readonly Secret[]>;
  readonly runtimeHandlerOf: (pod: IdentifiedPod) => string;
  /** undefined: there is no cluster, and so no service accounts. */
  readonly serviceAccounts: ServiceAccounts | undefined;
  readonly metrics: ImageMetrics;
}

/** What finding credentials needs of the process it runs in. */
export interface ProcessSurroundings {
  readonly workDir: string;
  readonly homeDir: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
}

export interface StartedImages extends Pick<StarterPorts, "ensureImage" | "prefetchImage"> {
  /** The pod is over: what was remembered for its next pull is not needed. */
  forgetPod(uid: PodUid): void;
  onCollected(imageIds: ReadonlySet<string>, before: number): Promise<void>;
}

/** Connects pulling to the starts of containers. */
export async function startImages(parts: ImageParts, signal: AbortSignal): Promise<StartedImages> {
  const { config, clock, ledger } = parts;
  const { kubelet, gates } = config;
  const access = await imageAccess(parts, signal);
  const puller = new ImagePuller(
    {
      serializeImagePulls: kubelet.serializeImagePulls,
      maxParallelImagePulls: kubelet.maxParallelImagePulls,
      imagesPerRuntimeHandler: gates.enabled("RuntimeClassInImageCriApi"),
      registryPullQps: kubelet.registryPullQPS,
      registryBurst: kubelet.registryBurst,
      longestPullMs: undefined,
    },
    {
      images: parts.images,
      clock,
      access,
      credentials: await credentials(parts),
      recordEvent: parts.recordEvent,
      onUse: parts.onUse,
      onPull: parts.metrics.onPull,
    },
  );
  const prefetch = new ImagePrefetch(puller);
  const requestOf = async (
    pod: IdentifiedPod,
    kind: ContainerKind,
    container: Container,
    sandboxConfig: PodSandboxConfig,
    signal: AbortSignal,
  ): Promise<ImageRequest> => ({
    pod,
    ...imageOf({ kind, container }),
    pullSecrets: await parts.pullSecrets(pod, signal),
    sandboxConfig,
    runtimeHandler: parts.runtimeHandlerOf(pod),
  });
  return {
    forgetPod(uid) {
      puller.backoff.forgetPod(uid);
      prefetch.forgetPod(uid);
    },
    onCollected: async (imageIds, before) => access?.prune(imageIds, before),
    prefetchImage(pod, kind, container, sandbox, signal) {
      // Whoever needs the image later meets the same trouble and reports it.
      requestOf(pod, kind, container, sandbox, signal).then(
        (request) => prefetch.begin(request, signal),
        () => {},
      );
    },
    async ensureImage(pod, kind, container, sandbox, signal) {
      const span = ledger.begin(uidOf(pod), "pull", container.image ?? "");
      try {
        const request = await requestOf(pod, kind, container, sandbox, signal);
        const { imageRef, image } = await prefetch.ensure(request, signal);
        const mounted = await fetchMountedImages(pod, container, parts.runtime, async (wanted) => {
          const { imageRef: ref } = await puller.ensure({ ...request, ...mountedImageOf(wanted) }, signal);
          return ref;
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
    },
  };
}

async function credentials({ config, clock, log, surroundings, ...more }: ImageParts): Promise<Credentials> {
  const { imageCredentialProviderConfig, imageCredentialProviderBinDir, rootDir } = config.flags;
  const { workDir, homeDir, environment } = surroundings;
  const node = new NodeCredentials({ rootDir, workDir, homeDir }, { clock, log });
  if (imageCredentialProviderConfig === "" && imageCredentialProviderBinDir === "") return new Credentials(node, []);
  const { providers } = await loadCredentialProviders({
    configPath: imageCredentialProviderConfig,
    binDir: imageCredentialProviderBinDir,
    allowTokens: config.gates.enabled("KubeletServiceAccountTokenForCredentialProviders"),
  });
  const ports = { clock, log, environment, serviceAccounts: more.serviceAccounts, onCall: more.metrics.onPlugin };
  return new Credentials(
    node,
    providers.map((provider) => new CredentialPlugin(provider, imageCredentialProviderBinDir, ports)),
  );
}

async function imageAccess(
  { config, clock, log, images }: ImageParts,
  signal: AbortSignal,
): Promise<ImageAccess | undefined> {
  if (!config.gates.enabled("KubeletEnsureSecretPulledImages")) return undefined;
  const { imagePullCredentialsVerificationPolicy: type, preloadedImagesVerificationAllowlist: allowlist } =
    config.kubelet;
  const policy: VerificationPolicy =
    type === "NeverVerifyAllowlistedImages"
      ? { type, allowlist }
      : { type: type === "" ? "NeverVerifyPreloadedImages" : type };
  const records = new PullRecords(join(config.flags.rootDir, "image_manager"));
  const access = new ImageAccess(policy, { records, clock, log });
  const listImages = () => images.listImages({ filter: undefined }, { signal });
  const { images: present } = await untilAnswered("which images are there", listImages, { clock, log }, signal);
  await access.recover(present.map(({ id, repoTags, repoDigests }) => ({ id, names: [...repoTags, ...repoDigests] })));
  return access;
}
