import type { Socket } from "node:net";

/** Tells connections apart, also where a TLS socket does not say which connection it was made from. */
export function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
