import { join } from "node:path";
import type { TaskScope } from "../ground/base/index.ts";
import { type AgentConfig, certDirOf } from "../ground/config/index.ts";
import { HealthzServer, LocalSocketServer, loadNodeApi, type NodeApiPorts } from "../node/server/index.ts";

/** Opens what others ask the agent through. Only the healthz port may be taken: it is tried again. */
export async function openListeners(
  config: AgentConfig,
  rootDir: string,
  ports: NodeApiPorts,
  scope: TaskScope,
): Promise<void> {
  const { log } = ports;
  const { kubelet } = config;
  // Before the local socket: who is answered there may look for the dashboard next.
  const { dashboardAddress } = config.flags;
  if (dashboardAddress !== undefined) await ports.dashboard.listen(dashboardAddress, scope);
  const localPath = join(rootDir, "nodelet.sock");
  const local = new LocalSocketServer(localPath, ports);
  await local.listen();
  scope.spawn("local socket", (signal) => local.serve(signal));
  log.info("Listening", { socket: localPath });
  if (kubelet.healthzPort > 0) {
    const where = { host: kubelet.healthzBindAddress, port: kubelet.healthzPort };
    const healthz = new HealthzServer(where, ports);
    scope.spawn("healthz", (signal) => healthz.run(signal));
  } else ports.health.report("healthz", { state: "ok", note: "turned off" });
  ports.health.report("node-api", { state: "waiting", reason: "it is being opened" });
  // Making a certificate takes a while the first time; the agent need not wait for it. A port that can't be had ends it.
  scope.spawn("open the node API", async () => {
    if (kubelet.readOnlyPort > 0) await (await loadNodeApi()).serveReadOnly(config, ports, scope);
    if (kubelet.enableServer) {
      const places = { rootDir, certDir: certDirOf(config, rootDir) };
      await (await loadNodeApi()).serveNodeApi(config, places, ports, scope);
    }
    ports.health.report("node-api", { state: "ok", ...(kubelet.enableServer ? {} : { note: "turned off" }) });
  });
}
