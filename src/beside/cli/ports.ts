import { createServer } from "node:net";

/** The port itself, or another one when a program of this machine has it already. */
export async function usablePort(preferred: number): Promise<number> {
  return (await listenBriefly(preferred)) ?? (await listenBriefly(0)) ?? preferred;
}

function listenBriefly(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? address?.port : undefined));
    });
  });
}
