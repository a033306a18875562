import { type Clock, type Logger, TokenBucket } from "../../ground/base/index.ts";
import {
  type ClusterAccess,
  type Credentials,
  type Environment,
  LiveMaterial,
  proxyFromEnvironment,
  UserCredentials,
} from "./access/index.ts";
import { KubeClient, type RequestReport } from "./client.ts";
import { Transport, type TransportSettings } from "./transport/index.ts";

export interface ClientLimits {
  /** Requests per second; 0 means the customary 5. */
  readonly qps: number;
  /** 0 means the customary 10. */
  readonly burst: number;
}

export interface KubeClientsSettings {
  readonly userAgent: string;
  readonly main: ClientLimits;
  readonly events: ClientLimits;
  /** The shorter of lease duration and status frequency: a heartbeat that comes later is of no use. */
  readonly heartbeatTimeoutMs: number;
}

export interface KubeClientsPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Proxies, HTTP/2 settings, and what exec plugins inherit. */
  readonly environment: Environment;
  /** In place of what the kubeconfig says, for certificates that the agent manages itself. */
  readonly credentials?: Credentials;
  readonly onRequest?: (report: RequestReport) => void;
}

// The server's own limit is a minute; after that nothing will come.
const requestTimeoutMs = 70_000;
const dialTimeoutMs = 30_000;

/**
 * The agent's three ways to the API server, so that neither work nor events can hold up the heartbeat. Heartbeats have
 * a connection of their own; events travel with the rest.
 */
export class KubeClients implements Disposable {
  readonly main: KubeClient;
  readonly events: KubeClient;
  readonly heartbeat: KubeClient;
  readonly credentials: Credentials;
  /** Host and port of the API server. */
  readonly server: string;
  readonly #common: Transport;
  readonly #vital: Transport;

  constructor(access: ClusterAccess, settings: KubeClientsSettings, ports: KubeClientsPorts) {
    const { clock, log, environment } = ports;
    const { trust } = access;
    this.server = access.server.host;
    const certificates = trust.type === "authority" ? new LiveMaterial(trust.certificates, clock) : undefined;
    const authority = async (): Promise<Buffer | undefined> => certificates?.read();
    const credentials =
      ports.credentials ??
      new UserCredentials(access, { clock, log, environment: definedOnly(environment), authority });
    const transportPorts = { clock, log, credentials, authority };
    const transportSettings = transportSettingsOf(access, environment);
    this.#common = new Transport(transportSettings, transportPorts);
    this.#vital = new Transport(transportSettings, transportPorts);
    this.credentials = credentials;

    const client = (transport: Transport, limits: ClientLimits | "unlimited", timeoutMs: number): KubeClient => {
      const throttle = limits === "unlimited" ? undefined : new TokenBucket(limits.qps || 5, limits.burst || 10, clock);
      return new KubeClient(
        { userAgent: settings.userAgent, timeoutMs, throttle },
        { transport, credentials, clock, log, onRequest: ports.onRequest },
      );
    };
    this.main = client(this.#common, settings.main, requestTimeoutMs);
    this.events = client(this.#common, settings.events, requestTimeoutMs);
    this.heartbeat = client(this.#vital, "unlimited", settings.heartbeatTimeoutMs);
  }

  /** For when heartbeats fail again and again: the connection may be to a server that is gone without a word. */
  resetHeartbeat(): void {
    this.#vital.closeConnections(new Error("heartbeats failed on it again and again"));
  }

  /** For when we have become somebody else: watches, which never end by themselves, are to go on as who we are now. */
  replaceConnections(): void {
    this.#common.retireConnections();
    this.#vital.retireConnections();
  }

  [Symbol.dispose](): void {
    this.#common[Symbol.dispose]();
    this.#vital[Symbol.dispose]();
  }
}

function transportSettingsOf(access: ClusterAccess, environment: Environment): TransportSettings {
  return {
    server: access.server,
    tlsServerName: access.tlsServerName,
    verifyServer: access.trust.type !== "anyone",
    proxy: access.proxyUrl ?? proxyFromEnvironment(access.server, environment),
    http2: !environment["DISABLE_HTTP2"],
    dialTimeoutMs,
    pingAfterMs: seconds(environment["HTTP2_READ_IDLE_TIMEOUT_SECONDS"], 30),
    pingTimeoutMs: seconds(environment["HTTP2_PING_TIMEOUT_SECONDS"], 15),
  };
}

function seconds(text: string | undefined, absent: number): number {
  return (text !== undefined && /^\d+$/.test(text) ? Number(text) : absent) * 1_000;
}

function definedOnly(environment: Environment): Readonly<Record<string, string>> {
  const defined: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) if (value !== undefined) defined[name] = value;
  return defined;
}
