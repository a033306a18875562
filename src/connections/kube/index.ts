// The connection to the API server: kubeconfig, client, watch, events, certificates.
export { type ClusterAccess, loadKubeconfig, parseKubeconfig } from "./access/index.ts";
export {
  ApiError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isNotFound,
  isOtherUid,
  isTooLarge,
} from "./api-error.ts";
export {
  type CertificateFigures,
  CertificateFileStore,
  CertificateRotation,
  type CertificateState,
  issueCertificate,
  issuedWithinMs,
  serverUse,
  servingTemplate,
} from "./certificates/index.ts";
export {
  KubeClient,
  type ListOptions,
  type ObjectList,
  type Patch,
  type RequestReport,
  type WatchOptions,
} from "./client.ts";
export { KubeClients, type KubeClientsSettings } from "./clients.ts";
export { EventRecorder, eventsTo, type NodeEvents, type Recorders } from "./events/index.ts";
export {
  type ApiConnection,
  type ApiConnectionPorts,
  KubeconfigConnection,
} from "./kubeconfig-connection.ts";
export { getObject, ObjectWatches, requestToken } from "./objects/index.ts";
export { isNewer } from "./resource-version.ts";
export { type KubeObject, type ObjectRef, pathOf, type Resource, resources } from "./resources.ts";
export { nodeMergeKeys, podMergeKeys, strategicPatch } from "./strategic-patch.ts";
export { ConnectionError, type HttpResponse } from "./transport/index.ts";
export { Informer, type ListWatchPorts, type WatchClient, withoutManagedFields } from "./watch/index.ts";
