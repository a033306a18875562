import type { Clock, Logger } from "../base/index.ts";
import { openGate } from "./api/gate.ts";
import { readOnlyMounts } from "./api/node-api.ts";
import { NodeServer, type Where } from "./api/node-server.ts";
import type { HealthRegistry } from "./health.ts";
import type { LocalViews } from "./ports.ts";

/** The unauthenticated port (readOnlyPort): shows the pods, changes nothing. */
export class ReadOnlyServer extends NodeServer {
  constructor(
    where: Where,
    ports: { views: Pick<LocalViews, "pods">; health: HealthRegistry; clock: Clock; log: Logger },
  ) {
    const { clock, log } = ports;
    const mounts = readOnlyMounts({ ...ports, onHealthAsked: () => {}, figures: [] });
    super(where, undefined, { mounts, gate: openGate, clock, log, onRequest: () => () => {} });
  }
}
