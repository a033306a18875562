import type { Service } from "../../ground/model/index.ts";
import type { KnownServices } from "./mapping/index.ts";

/** Port: the cluster's services. */
export interface ClusterServices {
  readonly hasSynced: boolean;
  list(): readonly Service[];
}

/** What containers are told of the cluster's services, as it is at the moment of asking. */
export function knownServices(services: ClusterServices | undefined): () => KnownServices {
  if (services === undefined) return () => ({ state: "none" });
  return () => (services.hasSynced ? { state: "read", services: services.list() } : { state: "unread" });
}
