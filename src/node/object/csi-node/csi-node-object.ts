import type { CsiNodeInfo } from "../../../connections/plugins/index.ts";
import { type CSINode, type CSINodeDriver, jsonEqual, type Node } from "../../../ground/model/index.ts";

const migratedAnnotation = "storage.alpha.kubernetes.io/migrated-plugins";
/** The volume kinds that are served by CSI drivers since Kubernetes 1.33, whatever the pod asks for. */
const migratedPlugins = [
  "kubernetes.io/aws-ebs",
  "kubernetes.io/azure-disk",
  "kubernetes.io/azure-file",
  "kubernetes.io/cinder",
  "kubernetes.io/gce-pd",
  "kubernetes.io/portworx-volume",
  "kubernetes.io/vsphere-volume",
].join(",");

const mostVolumes = 2_147_483_647n;

/** The CSINode of this Node: the one that is there with whatever it has, or a new one without drivers. */
export function csiNodeFor({ metadata: ownerMetadata }: Node, existing: CSINode | undefined): CSINode {
  const { name = "", uid = "" } = ownerMetadata ?? {};
  const { metadata } = existing ?? {};
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSINode",
    ...existing,
    metadata: {
      ...metadata,
      name,
      annotations: { ...metadata?.annotations, [migratedAnnotation]: migratedPlugins },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }],
    },
    spec: existing?.spec ?? { drivers: [] },
  };
}

/** Unchanged when the driver is listed as it says. */
export function withDriver(object: CSINode, { driver, nodeId, topology, maxVolumes }: CsiNodeInfo): CSINode {
  const entry: CSINodeDriver = {
    name: driver,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).sort(),
    ...(maxVolumes > 0n && { allocatable: { count: Number(maxVolumes > mostVolumes ? mostVolumes : maxVolumes) } }),
  };
  const present = driversOf(object);
  // An empty list comes back from the API server as none.
  const isListed = present.some((each) => jsonEqual({ ...each, topologyKeys: each.topologyKeys ?? [] }, entry));
  if (isListed) return object;
  const others = present.filter(({ name }) => name !== driver);
  return { ...object, spec: { ...object.spec, drivers: [...others, entry] } };
}

/** Unchanged when the driver is not listed. */
export function withoutDriver(object: CSINode, driver: string): CSINode {
  const present = driversOf(object);
  const others = present.filter(({ name }) => name !== driver);
  return others.length === present.length ? object : { ...object, spec: { ...object.spec, drivers: others } };
}

/** The API server sends an empty list of drivers as null. */
function driversOf({
  spec,
}: {
  readonly spec: { readonly drivers: readonly CSINodeDriver[] | null };
}): readonly CSINodeDriver[] {
  return spec.drivers ?? [];
}
