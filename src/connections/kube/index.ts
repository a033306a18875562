// The connection to the API server: kubeconfig, client, watch, events, certificates.
export {
  type ClientCertificate,
  type ClusterAccess,
  type Credentials,
  loadKubeconfig,
  parseKubeconfig,
} from "./access/index.ts";
export { ApiError, isAlreadyExists, isConflict, isForbidden, isNotFound, isOtherUid } from "./api-error.ts";
export {
  bootstrapClientCertificate,
  type CertificateFigures,
  CertificateFileStore,
  CertificateManager,
  chooseBootstrap,
  clientUse,
  guardClientCertificate,
  issueCertificate,
  ManagedCredentials,
  nodeIdentity,
  serverUse,
  servingTemplate,
  writeKubeconfig,
} from "./certificates/index.ts";
export {
  KubeClient,
  type ListOptions,
  type ObjectList,
  type Patch,
  type RequestReport,
  type WatchOptions,
} from "./client.ts";
export {
  type ClientLimits,
  KubeClients,
  type KubeClientsPorts,
  type KubeClientsSettings,
} from "./clients.ts";
export { EventRecorder, type EventRecorderPorts } from "./events/index.ts";
export { getObject, type NamedObject, ObjectWatches, requestToken } from "./objects/index.ts";
export { isNewer } from "./resource-version.ts";
export { type KubeObject, type ObjectRef, pathOf, type Resource, resources } from "./resources.ts";
export { type MergeKeys, nodeMergeKeys, podMergeKeys, strategicPatch } from "./strategic-patch.ts";
export { ConnectionError, type HttpResponse } from "./transport/index.ts";
export {
  type Change,
  Informer,
  type InformerSettings,
  type ListWatchPorts,
  type WatchClient,
  withoutManagedFields,
} from "./watch/index.ts";
