// Images: names, credentials, pulling with fairness and back-off, and removing what nobody uses.
export { CredentialPlugin } from "./credential-plugin.ts";
export { ImageAccess } from "./image-access.ts";
export { ImageAgeFile } from "./image-ages.ts";
export { ImageError } from "./image-error.ts";
export { readImageFs } from "./image-fs.ts";
export { type ForeseenImage, type ImageForecast, ImageGc } from "./image-gc.ts";
export { ConfiguredImageGc } from "./image-gc-setup.ts";
export { ImagePuller, type ImageRequest } from "./image-puller.ts";
export { NodeCredentials } from "./node-credentials.ts";
export { ImageList, nodeStatusImages } from "./node-images.ts";
export { loadCredentialProviders } from "./plugin-config.ts";
export { type ForeseenImageUse, imageAccessOf, PodImages, recoverAccess } from "./pod-images.ts";
export { pullAccounts } from "./pull-accounts.ts";
export { PullCredentials } from "./pull-credentials.ts";
export { PullRecords } from "./pull-records.ts";
export { readPullSecrets } from "./pull-secrets.ts";
export { sandboxImageOf } from "./sandbox-image.ts";
