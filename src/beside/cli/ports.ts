import { createServer } from "node:net";
import type { Loopback } from "./machine/index.ts";

/**
 * Below what the kernel gives to whoever asks for any port, the near end of a connection included: one of those may be
 * gone again before it is listened on, or when the program that had it starts anew. Above the ports of well-known servers.
 */
const lowestPort = 12_000;
const highestPort = 32_000;
const tries = 100;

/** The port itself, or another one when a program of this machine has it already. */
export async function usablePort(host: Loopback, preferred: number): Promise<number> {
  return (await isFree(host, preferred)) ? preferred : ((await freePort(host)) ?? preferred);
}

/** A port that nobody listens on at the moment, and that nobody is given by chance. */
export async function freePort(host: Loopback): Promise<number | undefined> {
  for (let count = 0; count < tries; count++) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort));
    if (await isFree(host, port)) return port;
  }
  return undefined;
}

function isFree(host: Loopback, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
