import {
  CertificateFileStore,
  CertificateManager,
  issueCertificate,
  serverUse,
  servingTemplate,
} from "../connections/kube/index.ts";
import type { Clock, Logger, TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { NodeKeeper } from "../node/object/index.ts";
import type { Cluster } from "./cluster.ts";

/** How long one request may stay undecided: nobody approves these by themselves, so a person has to. */
const issuedWithinMs = 15 * 60_000;

/**
 * Has the certificate that the node API is served with signed by the API server, and keeps it signed for the addresses
 * that the node has. The server finds it in its file.
 */
export async function startServingCertificate(
  parts: {
    readonly cluster: Pick<Cluster, "clients">;
    readonly node: Pick<NodeKeeper, "node" | "onNode">;
    readonly config: AgentConfig;
    readonly certDir: string;
    readonly clock: Clock;
    readonly log: Logger;
  },
  scope: TaskScope,
): Promise<CertificateManager> {
  const { cluster, node, config, clock, log } = parts;
  const { random } = Math;
  const { tlsCertFile, tlsPrivateKeyFile } = config.kubelet;
  const manager = new CertificateManager(serverUse, {
    clock,
    log,
    random,
    store: new CertificateFileStore(
      {
        directory: parts.certDir,
        prefix: "kubelet-server",
        otherwise: tlsCertFile === "" ? undefined : { certFile: tlsCertFile, keyFile: tlsPrivateKeyFile },
      },
      { clock, log },
    ),
    template: () =>
      servingTemplate(config.nodeName, node.node?.status?.addresses ?? [], {
        dnsOnly: config.gates.enabled("AllowDNSOnlyNodeCSR"),
      }),
    issue: (order, _current, signal) =>
      issueCertificate(order, issuedWithinMs, { client: cluster.clients.main, clock, log, random }, signal),
  });
  await manager.load();
  node.onNode(() => manager.templateChanged());
  scope.spawn("serving certificate", (signal) => manager.run(signal));
  return manager;
}
