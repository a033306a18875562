import type { Socket } from "node:net";
import { peerOf } from "./peer.ts";

/** Connections of one address that nothing was let in on yet: what a busy API server opens at once, and more. */
const mostOfOne = 256;
/** Of all addresses: some hundred megabytes with all that TLS keeps for each. */
const mostOfAll = 1024;

/**
 * Connections that have yet to show that they may ask anything. Every pod can open them by the thousand, without being
 * anybody, and each costs memory and a descriptor of the agent. Who has too many loses the oldest of its own.
 */
export class UnauthenticatedConnections {
  readonly #byAddress = new Map<string, Map<string, Socket>>();
  #count = 0;

  connected(socket: Socket): void {
    const { remoteAddress: address = "" } = socket;
    const peer = peerOf(socket);
    const own = this.#byAddress.get(address) ?? new Map<string, Socket>();
    // One that is handed to the server anew.
    if (own.has(peer)) return;
    own.set(peer, socket);
    this.#byAddress.set(address, own);
    this.#count++;
    socket.once("close", () => this.#forget(address, peer));
    if (own.size > mostOfOne) this.#cutOldest(address);
    else if (this.#count > mostOfAll) this.#cutOldest(this.#addressWithMost());
  }

  /** Something was let in on the connection, whose socket may be the one that TLS has made of it. */
  letIn(socket: Socket): void {
    this.#forget(socket.remoteAddress ?? "", peerOf(socket));
  }

  #forget(address: string, peer: string): void {
    const own = this.#byAddress.get(address);
    if (own?.delete(peer) !== true) return;
    this.#count--;
    if (own.size === 0) this.#byAddress.delete(address);
  }

  #cutOldest(address: string): void {
    for (const [peer, socket] of this.#byAddress.get(address) ?? []) {
      this.#forget(address, peer);
      socket.destroy();
      return;
    }
  }

  #addressWithMost(): string {
    let most = { address: "", size: 0 };
    for (const [address, { size }] of this.#byAddress) if (size > most.size) most = { address, size };
    return most.address;
  }
}
