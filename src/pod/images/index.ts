// Images: names, credentials, pulling with fairness and back-off, and removing what nobody uses.
export {
  CredentialPlugin,
  type PluginPorts,
  type PullingPod,
  type ServiceAccounts,
} from "./credential-plugin.ts";
export { Credentials } from "./credentials.ts";
export { ImageAccess, type VerificationPolicy } from "./image-access.ts";
export { ImageAgeFile, type ImageAgeStore } from "./image-ages.ts";
export { ImageError } from "./image-error.ts";
export { type ImageFs, readImageFs } from "./image-fs.ts";
export { ImageGc, type ImageGcPorts, type ImageGcSettings } from "./image-gc.ts";
export { ImageGcLoop } from "./image-gc-loop.ts";
export {
  type ImagePhase,
  ImagePuller,
  type ImagePullerPorts,
  type ImagePullerSettings,
  type ImageRequest,
} from "./image-puller.ts";
export { type NodeCredentialPaths, NodeCredentials } from "./node-credentials.ts";
export { ImageList, nodeStatusImages } from "./node-images.ts";
export {
  type CredentialProviderConfig,
  loadCredentialProviders,
} from "./plugin-config.ts";
export { imageAccessOf, PodImages, type ProcessSurroundings, recoverAccess } from "./pod-images.ts";
export { pullAccounts } from "./pull-accounts.ts";
export type { PulledImage, PullOutcome } from "./pull-attempts.ts";
export type { SavedBackoff } from "./pull-backoff.ts";
export type { PullInProgress } from "./pull-queue.ts";
export { PullRecords } from "./pull-records.ts";
export type { PullSecretPorts } from "./pull-secrets.ts";
export { readPullSecrets } from "./pull-secrets.ts";
export { sandboxImageOf } from "./sandbox-image.ts";
