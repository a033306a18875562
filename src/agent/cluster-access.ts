import {
  bootstrapClientCertificate,
  CertificateFileStore,
  CertificateManager,
  type ClusterAccess,
  clientUse,
  guardClientCertificate,
  hasValidCertificate,
  issueCertificate,
  KubeClients,
  type KubeClientsSettings,
  loadKubeconfig,
  ManagedCredentials,
  nodeIdentity,
  type RequestReport,
  writeKubeconfig,
} from "../connections/kube/index.ts";
import { type Clock, isAbort, type Logger, type TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";

export interface ClusterAccessParts {
  readonly config: AgentConfig;
  /** Where certificates are kept. */
  readonly certDir: string;
  readonly settings: KubeClientsSettings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string>>;
  /** For metrics: told of requests to the API server at this host. */
  readonly watchRequests: (host: string) => (report: RequestReport) => void;
}

export interface ClusterDoor {
  readonly clients: KubeClients;
  /** Undefined: we are who the kubeconfig says, and others see to it that its credentials stay good. */
  readonly certificate: CertificateManager | undefined;
}

/** How long one request for a certificate may stay undecided. */
const issuedWithinMs = 15 * 60_000;

/**
 * Opens the way to the API server: as the kubeconfig says, or with a certificate that the agent asks for itself. Without
 * rotation it waits for the first certificate; with it that one comes later, and is replaced before it expires.
 */
export async function openClusterDoor(parts: ClusterAccessParts, scope: TaskScope): Promise<ClusterDoor> {
  const { config, clock, log } = parts;
  const { kubeconfig, bootstrapKubeconfig } = config.flags;
  const bootstraps = bootstrapKubeconfig !== "" && !(await hasValidCertificate(kubeconfig, { clock, log }));
  if (config.kubelet.rotateCertificates) return await openManaged(parts, bootstraps, scope);
  if (bootstraps) await bootstrapNow(parts, scope.signal);
  return { clients: clientsFor(parts, await loadKubeconfig(kubeconfig)), certificate: undefined };
}

/** Asks for the first certificate with the bootstrap credentials and waits for it. */
async function bootstrapNow(parts: ClusterAccessParts, signal: AbortSignal): Promise<void> {
  const { config, certDir, clock, log } = parts;
  const access = await loadKubeconfig(config.flags.bootstrapKubeconfig);
  using clients = clientsFor(parts, access);
  const store = new CertificateFileStore({ directory: certDir, prefix: "kubelet-client" }, { clock, log });
  const ports = { client: clients.main, store, clock, log, random: Math.random };
  try {
    await bootstrapClientCertificate(config.nodeName, certDir, ports, signal);
  } catch (error) {
    if (isAbort(error, signal)) throw error;
    throw new Error("Cannot get the node's first client certificate from the API server", { cause: error });
  }
  await writeKubeconfig(config.flags.kubeconfig, access, store.currentPath);
}

async function openManaged(parts: ClusterAccessParts, bootstraps: boolean, scope: TaskScope): Promise<ClusterDoor> {
  const { config, certDir, clock, log } = parts;
  const { kubeconfig, bootstrapKubeconfig } = config.flags;
  if (bootstraps) {
    log.info("Client rotation is on, will bootstrap in background");
    const { currentPath } = new CertificateFileStore({ directory: certDir, prefix: "kubelet-client" }, parts);
    await writeKubeconfig(kubeconfig, await loadKubeconfig(bootstrapKubeconfig), currentPath);
  }
  const access = await loadKubeconfig(kubeconfig);
  const manager: CertificateManager = new CertificateManager(clientUse, {
    clock,
    log,
    random: Math.random,
    store: new CertificateFileStore(
      { directory: certDir, prefix: "kubelet-client", otherwise: certificateFiles(access) },
      { clock, log },
    ),
    template: () => nodeIdentity(config.nodeName),
    issue: async (order, current, signal) => {
      const ports = { clock, log, random: Math.random };
      if (current !== undefined) {
        return await issueCertificate(order, issuedWithinMs, { ...ports, client: clients.main }, signal);
      }
      // Only those who don't know us yet are shown the credentials of a newcomer.
      using newcomer = clientsFor(
        parts,
        bootstrapKubeconfig === "" ? access : await loadKubeconfig(bootstrapKubeconfig),
      );
      return await issueCertificate(order, issuedWithinMs, { ...ports, client: newcomer.main }, signal);
    },
  });
  const clients = clientsFor(parts, access, manager);
  await manager.load();
  const { certificate } = access.user;
  if (manager.current === undefined && certificate?.certificate.type === "data" && certificate.key.type === "data") {
    await manager.borrow(certificate.certificate.data.toString(), certificate.key.data.toString());
  }
  manager.onChange(() => {
    log.info("Certificate rotation detected, shutting down client connections to start using new credentials");
    clients.replaceConnections();
  });
  scope.spawn("client certificate", (signal) => manager.run(signal));
  scope.spawn("client certificate guard", (signal) => guardClientCertificate(manager, { clock, log }, signal));
  return { clients, certificate: manager };
}

function clientsFor(parts: ClusterAccessParts, access: ClusterAccess, manager?: CertificateManager): KubeClients {
  const { settings, clock, log, environment } = parts;
  const credentials = manager === undefined ? {} : { credentials: new ManagedCredentials(manager, clock) };
  const onRequest = parts.watchRequests(access.server.host);
  return new KubeClients(access, settings, { clock, log, environment, onRequest, ...credentials });
}

function certificateFiles({ user }: ClusterAccess) {
  const { certificate, key } = user.certificate ?? {};
  if (certificate?.type !== "file" || key?.type !== "file") return undefined;
  return { certFile: certificate.path, keyFile: key.path };
}
