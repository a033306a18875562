import { type Clock, type Logger, TokenBucket, type Tracer } from "../../ground/base/index.ts";
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
  readonly tracer?: Tracer | undefined;
}

// The server's own limit is a minute; after that nothing will come.
const requestTimeoutMs = 70_000;
const dialTimeoutMs = 30_000;

/** Nothing can be asked yet: where the API server is, and as whom we may ask, is not known before `open`. */
class NotJoinedError extends Error {
  override readonly name = "NotJoinedError";
  constructor() {
    super("the agent has not joined its cluster yet");
  }
}

/** What is known of the API server once it can be asked. */
interface OpenWay {
  readonly server: string;
  readonly credentials: Credentials;
  readonly common: Transport;
  readonly vital: Transport;
  readonly onRequest: ((report: RequestReport) => void) | undefined;
}

/**
 * The agent's ways to the API server, so that neither work nor events can hold up the heartbeat, and questions about
 * those who ask the node hold up neither. Heartbeats have a connection of their own; the others travel together.
 */
export class KubeClients implements Disposable {
  readonly main: KubeClient;
  readonly events: KubeClient;
  /** Whose credentials these are, and what they may do: as often as strangers make us ask. */
  readonly reviews: KubeClient;
  readonly heartbeat: KubeClient;
  readonly #ports: KubeClientsPorts;
  #way: OpenWay | undefined;

  /** Without `access`, requests reject with NotJoinedError until `open` is called. */
  constructor(access: ClusterAccess | undefined, settings: KubeClientsSettings, ports: KubeClientsPorts) {
    const { clock, log } = ports;
    this.#ports = ports;
    const client = (
      choose: (way: OpenWay) => Transport,
      limits: ClientLimits | "unlimited",
      timeoutMs: number,
    ): KubeClient => {
      const throttle = limits === "unlimited" ? undefined : new TokenBucket(limits.qps || 5, limits.burst || 10, clock);
      return new KubeClient(
        { userAgent: settings.userAgent, timeoutMs, throttle },
        {
          transport: { send: async (request, signal) => await choose(this.#opened()).send(request, signal) },
          credentials: { refused: () => this.#opened().credentials.refused() },
          clock,
          log,
          onRequest: (report) => this.#way?.onRequest?.(report),
          tracer: ports.tracer,
        },
      );
    };
    this.main = client(({ common }) => common, settings.main, requestTimeoutMs);
    this.events = client(({ common }) => common, settings.events, requestTimeoutMs);
    this.reviews = client(({ common }) => common, settings.main, requestTimeoutMs);
    this.heartbeat = client(({ vital }) => vital, "unlimited", settings.heartbeatTimeoutMs);
    if (access !== undefined) this.open(access, ports);
  }

  /** Host and port of the API server. */
  get server(): string {
    return this.#opened().server;
  }

  /** From here on requests are sent, with the credentials given or those that the kubeconfig names. */
  open(access: ClusterAccess, means: Pick<KubeClientsPorts, "credentials" | "onRequest"> = {}): void {
    const { clock, log, environment } = this.#ports;
    const { trust } = access;
    const certificates = trust.type === "authority" ? new LiveMaterial(trust.certificates, clock) : undefined;
    const authority = async (): Promise<Buffer | undefined> => certificates?.read();
    const credentials =
      means.credentials ??
      new UserCredentials(access, { clock, log, environment: definedOnly(environment), authority });
    const transportPorts = { clock, log, credentials, authority };
    const transportSettings = transportSettingsOf(access, environment);
    this.#way = {
      server: access.server.host,
      credentials,
      common: new Transport(transportSettings, transportPorts),
      vital: new Transport(transportSettings, transportPorts),
      onRequest: means.onRequest,
    };
  }

  /** For when heartbeats fail again and again: the connection may be to a server that is gone without a word. */
  resetHeartbeat(): void {
    this.#way?.vital.closeConnections(new Error("heartbeats failed on it again and again"));
  }

  /** For when we have become somebody else: watches, which never end by themselves, are to go on as who we are now. */
  replaceConnections(): void {
    this.#way?.common.retireConnections();
    this.#way?.vital.retireConnections();
  }

  [Symbol.dispose](): void {
    this.#way?.common[Symbol.dispose]();
    this.#way?.vital[Symbol.dispose]();
  }

  #opened(): OpenWay {
    if (this.#way === undefined) throw new NotJoinedError();
    return this.#way;
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
