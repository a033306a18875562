import type {
  CertificateSigningRequest,
  ConfigMap,
  CSIDriver,
  CSINode,
  DraResourceClaim,
  DraResourceSlice,
  Event,
  Lease,
  Node,
  ObjectMeta,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  RuntimeClass,
  Secret,
  Service,
  ServiceAccount,
  SubjectAccessReview,
  TokenRequest,
  TokenReview,
  V1beta1ClusterTrustBundle,
  VolumeAttachment,
} from "../../ground/model/index.ts";

/** What every object of the API has. */
export interface KubeObject {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
}

/** A kind of object and where the API serves it; `Kind` is there for the compiler only. */
export interface Resource<Kind extends KubeObject> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: "namespace" | "cluster";
  readonly example?: Kind;
}

function namespaced<Kind extends KubeObject>(apiVersion: string, kind: string, plural: string): Resource<Kind> {
  return { apiVersion, kind, plural, scope: "namespace" };
}

function clusterWide<Kind extends KubeObject>(apiVersion: string, kind: string, plural: string): Resource<Kind> {
  return { apiVersion, kind, plural, scope: "cluster" };
}

/** The kinds that a node agent deals with. */
export const resources = {
  pods: namespaced<Pod>("v1", "Pod", "pods"),
  nodes: clusterWide<Node>("v1", "Node", "nodes"),
  services: namespaced<Service>("v1", "Service", "services"),
  secrets: namespaced<Secret>("v1", "Secret", "secrets"),
  configMaps: namespaced<ConfigMap>("v1", "ConfigMap", "configmaps"),
  serviceAccounts: namespaced<ServiceAccount>("v1", "ServiceAccount", "serviceaccounts"),
  events: namespaced<Event>("v1", "Event", "events"),
  persistentVolumes: clusterWide<PersistentVolume>("v1", "PersistentVolume", "persistentvolumes"),
  persistentVolumeClaims: namespaced<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
  leases: namespaced<Lease>("coordination.k8s.io/v1", "Lease", "leases"),
  runtimeClasses: clusterWide<RuntimeClass>("node.k8s.io/v1", "RuntimeClass", "runtimeclasses"),
  csiNodes: clusterWide<CSINode>("storage.k8s.io/v1", "CSINode", "csinodes"),
  csiDrivers: clusterWide<CSIDriver>("storage.k8s.io/v1", "CSIDriver", "csidrivers"),
  volumeAttachments: clusterWide<VolumeAttachment>("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments"),
  certificateSigningRequests: clusterWide<CertificateSigningRequest>(
    "certificates.k8s.io/v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
  ),
  clusterTrustBundles: clusterWide<V1beta1ClusterTrustBundle>(
    "certificates.k8s.io/v1beta1",
    "ClusterTrustBundle",
    "clustertrustbundles",
  ),
  resourceClaims: namespaced<DraResourceClaim>("resource.k8s.io/v1", "ResourceClaim", "resourceclaims"),
  resourceSlices: clusterWide<DraResourceSlice>("resource.k8s.io/v1", "ResourceSlice", "resourceslices"),
  tokenReviews: clusterWide<TokenReview>("authentication.k8s.io/v1", "TokenReview", "tokenreviews"),
  subjectAccessReviews: clusterWide<SubjectAccessReview>(
    "authorization.k8s.io/v1",
    "SubjectAccessReview",
    "subjectaccessreviews",
  ),
  /** Served only as `serviceaccounts/<name>/token`. */
  tokenRequests: namespaced<TokenRequest>("authentication.k8s.io/v1", "TokenRequest", "tokenrequests"),
} as const;

/** Which object of a kind; `subresource` such as "status". */
export interface ObjectRef {
  /** Undefined for a cluster-wide kind, or for all namespaces where a list is meant. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

export function pathOf(resource: Resource<KubeObject>, { namespace, name, subresource }: ObjectRef): string {
  const root = resource.apiVersion.includes("/") ? `/apis/${resource.apiVersion}` : `/api/${resource.apiVersion}`;
  if (resource.scope === "cluster" && namespace !== undefined) {
    throw new Error(`${resource.plural} have no namespace, but one was given (${namespace})`);
  }
  if (resource.scope === "namespace" && name !== undefined && !namespace) {
    throw new Error(`${resource.plural} live in a namespace, but none was given for "${name}"`);
  }
  const place = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const object = name === undefined ? "" : `/${encodeURIComponent(name)}`;
  const part = subresource === undefined ? "" : `/${subresource}`;
  return `${root}${place}/${resource.plural}${object}${part}`;
}
