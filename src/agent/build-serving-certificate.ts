import {
  CertificateFileStore,
  CertificateRotation,
  type CertificateState,
  issueCertificate,
  issuedWithinMs,
  serverUse,
  servingTemplate,
} from "../connections/kube/index.ts";
import type { TaskScope } from "../ground/base/index.ts";
import { certDirOf } from "../ground/config/index.ts";
import { showServingCertificate } from "../node/metrics/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { Foundation } from "./foundation.ts";

/**
 * Has the certificate that the node API is served with signed by the API server, and keeps it signed for the addresses
 * that the node has. The server finds it in its file.
 */
export function buildServingCertificate(
  base: Foundation,
  { own, clients }: Cluster,
): { readonly state: CertificateState; readonly start: (scope: TaskScope) => Promise<void> } {
  const { config, clock, random, metrics } = base;
  const log = base.log.named("kube");
  const { tlsCertFile, tlsPrivateKeyFile } = config.kubelet;
  const manager = new CertificateRotation(serverUse, {
    clock,
    log,
    random,
    store: new CertificateFileStore(
      {
        directory: certDirOf(config, base.rootDir),
        prefix: "kubelet-server",
        otherwise: tlsCertFile === "" ? undefined : { certFile: tlsCertFile, keyFile: tlsPrivateKeyFile },
      },
      { clock, log },
    ),
    template: () =>
      servingTemplate(config.nodeName, own.node?.status?.addresses ?? [], {
        dnsOnly: config.gates.enabled("AllowDNSOnlyNodeCSR"),
      }),
    issue: (order, _current, signal) =>
      issueCertificate(order, issuedWithinMs, { client: clients.main, clock, log, random }, signal),
  });
  return {
    get state() {
      return manager.state;
    },
    async start(scope) {
      await manager.load();
      own.onNode(() => manager.templateChanged());
      scope.spawn("serving certificate", (signal) => manager.run(signal));
      showServingCertificate(metrics.figures.main, manager);
    },
  };
}
