import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { loadedPart } from "../../../ground/base/index.ts";
import { hostOf, portOf, secured, type TlsSettings, tcpConnection } from "./sockets.ts";

export interface DialTarget {
  readonly server: URL;
  readonly proxy: URL | undefined;
  /** Undefined for plain HTTP. */
  readonly tls: TlsSettings | undefined;
}

/** Opens a connection to the server, through its proxy if it has one, and secures it. */
export async function dial(target: DialTarget, signal: AbortSignal): Promise<Socket | TLSSocket> {
  const host = hostOf(target.server);
  const port = portOf(target.server);
  const socket = await (target.proxy === undefined
    ? tcpConnection(host, port, signal)
    : throughProxy(target.proxy, host, port, signal));
  return target.tls === undefined ? socket : secured(socket, host, target.tls, signal);
}

async function throughProxy(proxy: URL, host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const { connectThroughProxy } = await loadedPart(import("./proxy.ts"));
  return connectThroughProxy(proxy, host, port, signal);
}
