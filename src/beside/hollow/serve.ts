import { type CriServices, servedCri } from "../../connections/cri/index.ts";
import { serveUnix } from "../../ground/grpc/index.ts";

export interface ServedRuntime extends AsyncDisposable {
  /** The endpoint in the form configurations have it. */
  readonly endpoint: string;
  /** Breaks every connection at once, as a killed runtime does. */
  kill(): Promise<void>;
}

/** Whoever asks a simulated runtime is limited by that runtime alone. */
const settings = { maxRequestBytes: 16 * 1024 * 1024, maxConnections: 10_000, callsAtOnce: 2 ** 32 - 1 };

/** Offers CRI services on a unix socket, so that anything that speaks CRI can talk to them. */
export async function serveRuntime(services: CriServices, socketPath: string): Promise<ServedRuntime> {
  const server = await serveUnix(socketPath, servedCri(services), settings);
  let end: Promise<void> | undefined;
  const kill = async (): Promise<void> => {
    end ??= Promise.resolve(server[Symbol.asyncDispose]());
    await end;
  };
  return { endpoint: `unix://${socketPath}`, kill, [Symbol.asyncDispose]: kill };
}
