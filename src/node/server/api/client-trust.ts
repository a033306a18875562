import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { peerOf } from "./peer.ts";

type Authorities = SecureContextOptions["ca"];

/**
 * Which connections were opened under the authorities of client certificates that hold now. A handshake checks a
 * client's certificate once; authorities that were taken away since must not be believed for the next request.
 */
export class ClientTrust {
  #authorities: Authorities;
  #generation = 0;
  // By peer: a TLS socket does not tell which connection it was made from.
  readonly #openedIn = new Map<string, number>();

  constructor(authorities: Authorities) {
    this.#authorities = authorities;
  }

  /** Takes note of a connection before its handshake. */
  connected(socket: Socket): void {
    const peer = peerOf(socket);
    if (this.#openedIn.has(peer)) return;
    this.#openedIn.set(peer, this.#generation);
    socket.once("close", () => this.#openedIn.delete(peer));
  }

  /** From now on these are believed; says whether they are others than before. */
  renew(authorities: Authorities): boolean {
    if (isSame(this.#authorities, authorities)) return false;
    this.#authorities = authorities;
    this.#generation++;
    return true;
  }

  isOutdated(socket: Socket): boolean {
    return (this.#openedIn.get(peerOf(socket)) ?? 0) < this.#generation;
  }
}

function isSame(a: Authorities, b: Authorities): boolean {
  const text = (authorities: Authorities): string => [authorities ?? []].flat().map(String).join("\0");
  return text(a) === text(b);
}
