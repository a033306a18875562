import { getObject, isNotFound, type KubeClient, resources } from "../../../connections/kube/index.ts";
import type { NodeObjects } from "../../../connections/plugins/index.ts";

/** What drivers on this node are written into: its CSINode, and metadata of its Node. */
export function nodeObjects(
  client: Pick<KubeClient, "get" | "create" | "update" | "patch">,
  nodeName: string,
): NodeObjects {
  const name = nodeName;
  return {
    csiNode: (signal) => getObject(client, resources.csiNodes, { name }, "latest", signal),
    putCsiNode: async (object, signal) => {
      if (object.metadata?.resourceVersion === undefined) await client.create(resources.csiNodes, {}, object, signal);
      else await client.update(resources.csiNodes, { name }, object, signal);
    },
    node: async (signal) => {
      try {
        return await client.get(resources.nodes, { name }, {}, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        throw new Error(`node "${name}" is not registered yet`, { cause: error });
      }
    },
    patchNode: async (metadata, signal) => {
      await client.patch(resources.nodes, { name }, { type: "merge", body: { metadata } }, signal);
    },
  };
}
