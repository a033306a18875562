import { getObject, type KubeClient, resources } from "../../connections/kube/index.ts";
import type {
  Node,
  ObjectReference,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  PodEvent,
} from "../../ground/model/index.ts";
import type { ResizeReport } from "./attaching/growth.ts";
import { attachmentIn } from "./attaching/volumes-in-use.ts";
import type { CsiCluster } from "./csi/ports.ts";
import type { Claims } from "./manager/claims.ts";

export interface CsiClusterParts {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly nodeName: string;
  /** The Node as the API server has shown it last. */
  readonly node: () => Node | undefined;
  /** Tells users of an object. */
  readonly recordEvent: (about: ObjectReference, event: PodEvent) => void;
}

/** Read live each time: a pod must not start on what a claim used to be. */
export function claimsOf({ client, node }: CsiClusterParts): Claims {
  return {
    claim: (namespace, name, signal) =>
      getObject(client, resources.persistentVolumeClaims, { namespace, name }, "latest", signal),
    persistentVolume: (name, signal) => getObject(client, resources.persistentVolumes, { name }, "latest", signal),
    node: () => {
      const { name, labels = {} } = node()?.metadata ?? {};
      return name === undefined ? undefined : { name, labels };
    },
  };
}

/** What the cluster says of storage, for the volumes of storage drivers. */
export function csiClusterOf({ client, nodeName, node, recordEvent }: CsiClusterParts): CsiCluster {
  return {
    csiDriver: (name, signal) => getObject(client, resources.csiDrivers, { name }, "cached", signal),
    attachment: (name, signal) => getObject(client, resources.volumeAttachments, { name }, "latest", signal),
    // What we know already is asked first: it costs nothing.
    attachedAt: async (uniqueName, signal) =>
      attachmentIn(node(), uniqueName) ??
      attachmentIn(await getObject(client, resources.nodes, { name: nodeName }, "latest", signal), uniqueName),
    secret: (namespace, name, signal) => getObject(client, resources.secrets, { namespace, name }, "latest", signal),
    reportResize: (claim, report, signal) => reportResize(client, claim, report, signal),
    recordClaimEvent: ({ metadata = {} }, event) => {
      const { namespace, name, uid, resourceVersion } = metadata;
      recordEvent({ apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid, resourceVersion }, event);
    },
  };
}

const resizeConditions = new Set(["Resizing", "FileSystemResizePending", "NodeResizeError", "ControllerResizeError"]);

async function reportResize(
  client: Pick<KubeClient, "patch">,
  { metadata, status }: PersistentVolumeClaim,
  report: ResizeReport,
  signal: AbortSignal,
): Promise<void> {
  const others = (status?.conditions ?? []).filter(({ type }) => !resizeConditions.has(type));
  const ref = { namespace: metadata?.namespace, name: metadata?.name, subresource: "status" };
  const body = { status: resizeStatus(report, others) };
  await client.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, signal);
}

function resizeStatus(report: ResizeReport, others: readonly PersistentVolumeClaimCondition[]): object {
  switch (report.state) {
    case "in progress":
      return { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } };
    case "done":
      return {
        capacity: { storage: report.capacity },
        allocatedResourceStatuses: { storage: null },
        conditions: others,
      };
    case "failed":
      if (report.isInfeasible) return { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } };
      return { conditions: [...others, { type: "NodeResizeError", status: "True", message: report.message }] };
  }
}
