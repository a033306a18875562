import { join } from "node:path";
import type { Machine } from "../connections/host/index.ts";
import type { Clock, Logger, TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import { KnownNode, newNode, nodeSettingsOf } from "../node/object/index.ts";
import type { Cluster } from "./cluster.ts";

/** Keeps the Node that pods are judged by, from before the first of them until the scope ends. */
export function followNode(
  parts: {
    readonly cluster: Pick<Cluster, "nodes" | "node">;
    readonly config: AgentConfig;
    readonly machine: Pick<Machine, "architecture">;
    readonly rootDir: string;
    readonly clock: Clock;
    readonly log: Logger;
  },
  scope: TaskScope,
): KnownNode {
  const { cluster, config, machine, clock } = parts;
  const known = new KnownNode({
    clock,
    log: parts.log.named("node"),
    nodeName: config.nodeName,
    path: join(parts.rootDir, "nodelet", "node.json"),
    ownNode: () => newNode(nodeSettingsOf(config), machine.architecture),
  });
  cluster.nodes.onChange((change) => {
    if (change.type !== "deleted") known.learn(change.object);
  });
  const present = cluster.node();
  if (present !== undefined) known.learn(present);
  scope.spawn("the Node that is known", async (signal) => {
    await known.run(signal);
  });
  return known;
}
