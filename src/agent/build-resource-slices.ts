import { ResourceSlices } from "../node/object/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { Foundation } from "./foundation.ts";

/** What DRA drivers publish of this node, and who takes it away when they are gone. */
export function buildResourceSlices({ config, clock, log, random }: Foundation, cluster: Cluster): ResourceSlices {
  return new ResourceSlices(config.nodeName, { client: cluster.clients.main, clock, log: log.named("claims"), random });
}
