import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { onAbort, systemNames } from "../../../ground/base/index.ts";

export interface TlsSettings {
  readonly context: SecureContext;
  /** Checked instead of the host name when not empty. */
  readonly serverName: string;
  readonly verify: boolean;
  readonly protocols: readonly string[];
}

const keepAliveMs = 30_000;

export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : url.protocol === "socks5:" ? 1080 : 80;
}

export function tcpConnection(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connectTcp({
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMs,
    lookup: systemNames.lookup,
  });
  return opened(socket, "connect", signal);
}

export function secured(under: Socket, host: string, tls: TlsSettings, signal: AbortSignal): Promise<TLSSocket> {
  const socket = connectTls({
    socket: under,
    host,
    secureContext: tls.context,
    rejectUnauthorized: tls.verify,
    ALPNProtocols: [...tls.protocols],
    // An address may not stand in the handshake, only be checked against the certificate.
    servername: tls.serverName !== "" ? tls.serverName : isIP(host) === 0 ? host : "",
  });
  return opened(socket, "secureConnect", signal);
}

/** Resolves with the socket once `event` has happened; a socket that gets there too late is destroyed. */
function opened<Kind extends Socket>(socket: Kind, event: string, signal: AbortSignal): Promise<Kind> {
  return new Promise((resolve, reject) => {
    let aborting: Disposable | undefined;
    const finish = (settle: () => void): void => {
      aborting?.[Symbol.dispose]();
      socket.off(event, onOpen).off("error", onError).off("close", onClose);
      settle();
    };
    const onOpen = (): void => finish(() => resolve(socket));
    const onError = (error: Error): void => {
      // Further errors of a socket that nobody uses any more are of no interest.
      finish(() => reject(error));
      socket.on("error", () => {}).destroy();
    };
    const onClose = (): void => onError(new Error("the connection was closed while being opened"));
    if (signal.aborted) return onError(signal.reason);
    aborting = onAbort(signal, () => onError(signal.reason));
    socket.on(event, onOpen).on("error", onError).on("close", onClose);
  });
}
