import { type Clock, type Logger, onAbort, type TaskScope, type Tracer } from "../../ground/base/index.ts";
import { type AgentConfig, certDirOf } from "../../ground/config/index.ts";
import { type ClusterAccess, loadKubeconfig } from "./access/index.ts";
import {
  bootstrapTls,
  type CertificateFigures,
  CertificateFileStore,
  CertificateRotation,
  clientUse,
  guardClientCertificate,
  issueCertificate,
  issuedWithinMs,
  ManagedCredentials,
  nodeIdentity,
} from "./certificates/index.ts";
import type { RequestReport } from "./client.ts";
import { KubeClients, type KubeClientsSettings } from "./clients.ts";

export interface ApiConnectionPorts {
  readonly config: AgentConfig;
  readonly rootDir: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string>>;
  /** For metrics: told of requests to the API server at this host. */
  readonly watchRequests: (host: string) => (report: RequestReport) => void;
  readonly tracer?: Tracer;
}

/** The way to the API server. */
export interface ApiConnection {
  /** Requests reject with NotJoinedError until the connection is open. */
  readonly clients: Pick<
    KubeClients,
    "main" | "events" | "reviews" | "heartbeat" | "server" | "resetHeartbeat" | "replaceConnections"
  >;
  /** Of the client certificate; undefined when the agent does not manage it, or before the connection is open. */
  readonly certificate: CertificateFigures | undefined;
  /** Finds out where the server is and as whom we may ask, and closes the way when the scope ends. */
  open(scope: TaskScope): Promise<void>;
}

/**
 * The way to the API server: as the kubeconfig says, or with a certificate that the agent asks for itself. Without
 * rotation `open` waits for the first certificate; with it that one comes later, and is replaced before it expires.
 */
export class KubeconfigConnection implements ApiConnection {
  readonly clients: KubeClients;
  readonly #ports: ApiConnectionPorts;
  readonly #settings: KubeClientsSettings;
  readonly #log: Logger;
  readonly #certDir: string;
  #certificate: CertificateRotation | undefined;

  constructor(ports: ApiConnectionPorts) {
    this.#ports = ports;
    this.#log = ports.log.named("kube");
    this.#settings = clientSettings(ports.config);
    this.#certDir = certDirOf(ports.config, ports.rootDir);
    this.clients = this.#newClients(undefined);
  }

  get certificate(): CertificateFigures | undefined {
    return this.#certificate;
  }

  async open(scope: TaskScope): Promise<void> {
    const { config, clock, random } = this.#ports;
    const { nodeName } = config;
    const { kubeconfig, bootstrapKubeconfig } = config.flags;
    const { rotateCertificates } = config.kubelet;
    onAbort(scope.signal, () => this.clients[Symbol.dispose]());
    await bootstrapTls(
      { nodeName, certDir: this.#certDir, kubeconfig, bootstrapKubeconfig, rotateCertificates },
      { clock, log: this.#log, random, store: this.#store(), newClients: (access) => this.#newClients(access) },
      scope.signal,
    );
    if (rotateCertificates) {
      await this.#openManaged(scope);
      return;
    }
    const access = await loadKubeconfig(kubeconfig);
    this.clients.open(access, { onRequest: this.#ports.watchRequests(access.server.host) });
  }

  async #openManaged(scope: TaskScope): Promise<void> {
    const { config, clock, watchRequests } = this.#ports;
    const log = this.#log;
    const access = await loadKubeconfig(config.flags.kubeconfig);
    const manager = this.#certificateManager(access);
    this.clients.open(access, {
      credentials: new ManagedCredentials(manager, clock),
      onRequest: watchRequests(access.server.host),
    });
    await manager.load();
    const { certificate } = access.user;
    if (manager.current === undefined && certificate?.certificate.type === "data" && certificate.key.type === "data") {
      await manager.borrow(certificate.certificate.data.toString(), certificate.key.data.toString());
    }
    manager.onChange(() => {
      log.info("Certificate rotation detected, shutting down client connections to start using new credentials");
      this.clients.replaceConnections();
    });
    this.#certificate = manager;
    scope.spawn("client certificate", (signal) => manager.run(signal));
    scope.spawn("client certificate guard", (signal) => guardClientCertificate(manager, { clock, log }, signal));
  }

  #certificateManager(access: ClusterAccess): CertificateRotation {
    const { config, clock, random } = this.#ports;
    const { bootstrapKubeconfig } = config.flags;
    const ports = { clock, log: this.#log, random };
    return new CertificateRotation(clientUse, {
      ...ports,
      store: this.#store(certificateFiles(access)),
      template: () => nodeIdentity(config.nodeName),
      issue: async (order, current, signal) => {
        if (current !== undefined) {
          return await issueCertificate(order, issuedWithinMs, { ...ports, client: this.clients.main }, signal);
        }
        // Only those who don't know us yet are shown the credentials of a newcomer.
        using newcomer = this.#newClients(
          bootstrapKubeconfig === "" ? access : await loadKubeconfig(bootstrapKubeconfig),
        );
        return await issueCertificate(order, issuedWithinMs, { ...ports, client: newcomer.main }, signal);
      },
    });
  }

  #store(otherwise?: ReturnType<typeof certificateFiles>): CertificateFileStore {
    const place = { directory: this.#certDir, prefix: "kubelet-client" };
    const { clock } = this.#ports;
    return new CertificateFileStore({ ...place, ...(otherwise && { otherwise }) }, { clock, log: this.#log });
  }

  #newClients(access: ClusterAccess | undefined): KubeClients {
    const { clock, environment, watchRequests, tracer } = this.#ports;
    const onRequest = access === undefined ? {} : { onRequest: watchRequests(access.server.host) };
    return new KubeClients(access, this.#settings, { clock, log: this.#log, environment, tracer, ...onRequest });
  }
}

function clientSettings({ kubelet, reportedVersion }: AgentConfig): KubeClientsSettings {
  return {
    userAgent: `nodelet/${reportedVersion} (linux) kubernetes`,
    main: { qps: kubelet.kubeAPIQPS, burst: kubelet.kubeAPIBurst },
    events: { qps: kubelet.eventRecordQPS, burst: kubelet.eventBurst },
    heartbeatTimeoutMs: Math.min(kubelet.nodeStatusUpdateFrequencyMs, kubelet.nodeLeaseDurationSeconds * 1000),
  };
}

function certificateFiles({ user }: ClusterAccess) {
  const { certificate, key } = user.certificate ?? {};
  if (certificate?.type !== "file" || key?.type !== "file") return undefined;
  return { certFile: certificate.path, keyFile: key.path };
}
