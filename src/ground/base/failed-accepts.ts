import type { Server } from "node:net";

/**
 * That one connection could not be accepted, for want of descriptors or memory or by a firewall's rule, is that client's
 * loss alone. For a server that listens: an error that nobody hears would end the process.
 */
export function outliveFailedAccepts(server: Server): void {
  server.on("error", () => {});
}
