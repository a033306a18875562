import { join } from "node:path";
import {
  type ImageService,
  type PodSandboxConfig,
  type RuntimeIdentity,
  untilAnswered,
} from "../../connections/cri/index.ts";
import { type Clock, type Logger, messageOf } from "../../ground/base/index.ts";
import type { AgentConfig } from "../../ground/config/index.ts";
import {
  type Container,
  type ContainerKind,
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
import { ImagePuller, type ImagePullerPorts, type ImageRequest, imageOf, mountedImageOf } from "./image-puller.ts";
import { fetchMountedImages } from "./image-volumes.ts";
import { NodeCredentials } from "./node-credentials.ts";
import { loadCredentialProviders } from "./plugin-config.ts";
import { ImagePrefetch } from "./prefetch.ts";
import { PullCredentials } from "./pull-credentials.ts";
import { PullRecords } from "./pull-records.ts";

export interface PodImagesPorts {
  readonly images: ImageService;
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
      const request = await this.#requestOf(pod, kind, container, sandbox, signal);
      const { imageRef, image } = await this.#prefetch.ensure(request, signal);
      const mounted = await fetchMountedImages(pod, container, this.#ports.runtime, async (wanted) => {
        const { imageRef: ref } = await this.#puller.ensure({ ...request, ...mountedImageOf(wanted) }, signal);
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
  };

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
