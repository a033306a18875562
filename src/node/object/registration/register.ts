import { isAlreadyExists, isForbidden, type KubeClient, resources } from "../../../connections/kube/index.ts";
import { type Clock, isAbort, type Logger, messageOf } from "../../../ground/base/index.ts";
import { jsonEqual, type Node } from "../../../ground/model/index.ts";
import type { DeviceFacts } from "../ports.ts";
import { nodeStatusPatch } from "../status/patch.ts";
import { reconciled } from "./reconcile.ts";

export interface RegisterPorts {
  readonly client: Pick<KubeClient, "create" | "get" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  /** The Node as it should be made now, status included. */
  readonly wanted: (signal: AbortSignal) => Promise<Node>;
  readonly devices: () => DeviceFacts;
}

const firstWaitMs = 100;
const longestWaitMs = 7_000;

/** Makes the Node, or brings the one that is there into line; tries until that is done. */
export async function registerNode(ports: RegisterPorts, signal: AbortSignal): Promise<Node> {
  const { clock, log } = ports;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    try {
      const wanted = await ports.wanted(signal);
      log.info("Attempting to register node", { node: wanted.metadata?.name });
      const node = await tryOnce(wanted, ports, signal);
      log.info("Successfully registered node", { node: node.metadata?.name });
      return node;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.error("Unable to register node with API server", error, { retryInMs: waitMs });
    }
    await clock.sleep(waitMs, signal);
  }
}

async function tryOnce(wanted: Node, { client, devices, log }: RegisterPorts, signal: AbortSignal): Promise<Node> {
  const name = wanted.metadata?.name;
  try {
    return await client.create(resources.nodes, {}, wanted, signal);
  } catch (error) {
    if (!isAlreadyExists(error) && !isForbidden(error)) throw error;
    // Somebody who may not make Nodes may still have been given one.
    if (isForbidden(error)) log.debug(1, "Not allowed to make the Node; looking for one", { err: messageOf(error) });
  }
  const existing = await client.get(resources.nodes, { name }, {}, signal);
  const next = reconciled(existing, wanted, devices());
  if (jsonEqual(existing, next)) return existing;
  const patch = { type: "strategic", body: nodeStatusPatch(existing, next) } as const;
  return client.patch(resources.nodes, { name, subresource: "status" }, patch, signal);
}
