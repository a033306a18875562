import { nodeMayReportClaim, nodeMayWriteNode, nodeMayWriteSlice } from "../admission/node-restriction.ts";
import { objectAt } from "../json.ts";
import { type Kind, storedKinds } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Strategy, World } from "../rest/world.ts";

export const nodeStrategy: Strategy = {
  admitCreate(object, _world, { user }) {
    nodeMayWriteNode(object, undefined, user);
    return completeNode(object);
  },
  admitUpdate(object, old, _world, { user }) {
    nodeMayWriteNode(object, old, user);
    return completeNode(object);
  },
  admitSubresource(_name, object, old, _world, { user }) {
    nodeMayWriteNode(object, old, user);
    return completeNode(object);
  },
};

const noNodeInfo = Object.fromEntries(
  ["machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"]
    .concat("kubeProxyVersion", "operatingSystem", "architecture")
    .map((field) => [field, ""]),
);

/** What is not told of a node is shown empty; what it can give is all it has, unless it says otherwise. */
function completeNode(object: ApiObject): ApiObject {
  const status = objectAt(object, "status");
  const { capacity } = status;
  return {
    ...object,
    spec: objectAt(object, "spec"),
    status: {
      ...(capacity !== undefined && { allocatable: capacity }),
      daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
      ...status,
      nodeInfo: { ...noNodeInfo, ...objectAt(status, "nodeInfo") },
    },
  };
}

export const namespaceStrategy: Strategy = {
  admitCreate(object) {
    const { name = "", labels } = object.metadata;
    return {
      ...object,
      metadata: { ...object.metadata, labels: { ...labels, "kubernetes.io/metadata.name": name } },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    };
  },
  admitUpdate: (object, old) => ({ ...object, spec: old["spec"] }),
  markDeleted: (object) => ({ ...object, status: { ...objectAt(object, "status"), phase: "Terminating" } }),
  holds: (object, world) => world.store.countIn(object.metadata.name ?? "") > 0,
};

/** Everything that stands in a namespace. */
export function contentsOf(
  world: World,
  namespace: string,
): readonly { readonly kind: Kind; readonly object: ApiObject }[] {
  return storedKinds
    .filter(({ namespaced }) => namespaced)
    .flatMap((kind) =>
      world.store
        .list(kind.storage)
        .filter(({ metadata }) => metadata.namespace === namespace)
        .map((object) => ({ kind, object })),
    );
}

export const claimStrategy: Strategy = {
  admitCreate: (object) => ({
    ...object,
    spec: { volumeMode: "Filesystem", ...objectAt(object, "spec") },
    status: { phase: "Pending" },
  }),
  admitSubresource(_name, object, old, _world, { user }) {
    nodeMayReportClaim(object, old, user);
    return object;
  },
};

export const resourceSliceStrategy: Strategy = {
  admitCreate(object, _world, { user }) {
    nodeMayWriteSlice(object, user, "create");
    return object;
  },
  admitUpdate(object, _old, _world, { user }) {
    nodeMayWriteSlice(object, user, "update");
    return object;
  },
  admitDelete: (object, _world, { user }) => nodeMayWriteSlice(object, user, "delete"),
};

export const volumeStrategy: Strategy = {
  admitCreate: (object) => ({
    ...object,
    spec: { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem", ...objectAt(object, "spec") },
    status: { phase: "Pending" },
  }),
};
