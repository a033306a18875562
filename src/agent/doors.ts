import { join } from "node:path";
import type { Clock, Logger, TaskScope } from "../base/index.ts";
import {
  type HealthRegistry,
  HealthzServer,
  LocalSocketServer,
  type LocalViews,
  type LogVerbosity,
  ReadOnlyServer,
} from "../server/index.ts";

export interface DoorSettings {
  readonly rootDir: string;
  readonly healthzBindAddress: string;
  readonly healthzPort: number;
  readonly address: string;
  readonly readOnlyPort: number;
}

export interface DoorPorts {
  readonly views: LocalViews;
  readonly health: HealthRegistry;
  readonly configz: () => unknown;
  readonly logVerbosity: LogVerbosity;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Opens what others ask the agent through. Only the healthz port may be taken: it is tried again. */
export async function openDoors(settings: DoorSettings, ports: DoorPorts, scope: TaskScope): Promise<void> {
  const { log } = ports;
  const localPath = join(settings.rootDir, "nodelet.sock");
  const local = new LocalSocketServer(localPath, ports);
  await local.listen();
  scope.spawn("local socket", (signal) => local.serve(signal));
  log.info("Listening", { socket: localPath });
  if (settings.healthzPort > 0) {
    const where = { host: settings.healthzBindAddress, port: settings.healthzPort };
    const healthz = new HealthzServer(where, ports);
    scope.spawn("healthz", (signal) => healthz.run(signal));
  }
  if (settings.readOnlyPort > 0) {
    const where = { host: settings.address, port: settings.readOnlyPort };
    const readOnly = new ReadOnlyServer(where, ports);
    await readOnly.listen();
    scope.spawn("read-only port", (signal) => readOnly.serve(signal));
    log.info("Listening without authentication, read-only", where);
  }
}
