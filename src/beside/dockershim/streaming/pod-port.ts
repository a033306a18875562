import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connectLoopbackIn } from "../../../connections/host/index.ts";
import { messageOf, waitFor } from "../../../ground/base/index.ts";
import type { ShimContext } from "../service/context.ts";

/** What the client is told when a port can't be reached, in upstream's words. */
export function forwardingFailed(sandboxId: string, port: number, problem: unknown): string {
  return `error forwarding port ${port} to pod ${sandboxId}, uid : ${messageOf(problem)}`;
}

/** The pod's own loopback: also what listens there only is reached. */
export async function dialPod(
  { engine }: ShimContext,
  sandboxId: string,
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  const sandbox = await engine.inspectContainer(sandboxId, signal);
  if (!sandbox.state.running) throw new Error(`sandbox container "${sandboxId}" is not running`);
  const isOnHost = sandbox.host.networkMode === "host";
  const namespace = `/proc/${sandbox.state.pid}/ns/net`;
  const to = (family: "ipv4" | "ipv6"): Promise<Socket> =>
    isOnHost
      ? dialHere(family === "ipv4" ? "127.0.0.1" : "::1", port, signal)
      : connectLoopbackIn(namespace, family, port, signal);
  try {
    return await to("ipv4");
  } catch (error) {
    signal.throwIfAborted();
    return await to("ipv6").catch(() => {
      throw error;
    });
  }
}

async function dialHere(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true });
  try {
    await waitFor(signal, (done, fail) => {
      socket.once("connect", done).once("error", fail);
      return () => socket.off("connect", done).off("error", fail);
    });
    return socket;
  } catch (error) {
    socket.on("error", () => {});
    socket.destroy();
    throw error;
  }
}

/**
 * Both ways until both have ended, and what the client said last has arrived; each side holds the other back. A side
 * that breaks off ends the other.
 */
export async function splice(client: Duplex, target: Socket): Promise<void> {
  // It may have left while the pod was called, and tells of that only once.
  if (client.destroyed) return void target.destroy();
  await new Promise<void>((resolve) => {
    let open = 2;
    const half = (): void => {
      open--;
      if (open === 0) resolve();
    };
    const brokenOff = (): void => {
      client.end();
      resolve();
    };
    target.once("error", brokenOff).once("close", brokenOff);
    client.once("error", brokenOff).once("close", brokenOff);
    client.pipe(target);
    target.pipe(client);
    target.once("finish", half);
    target.once("end", half);
  });
  client.unpipe(target);
  // What the client goes on to say is for nobody, and must not hold back its other connections.
  client.resume();
  target.destroy();
}
