import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { type ImageService, type RuntimeService, servedCri } from "../../connections/cri/index.ts";
import { serveUnix } from "../../ground/grpc/index.ts";

const maxRequestBytes = 16 * 1024 * 1024;
const maxConnections = 256;
/** A kubelet has one connection for all it does, and stopping takes as long as the grace of each container. */
const callsAtOnce = 10_000;

/** Offers CRI on a unix socket until disposed of. */
export async function serveCri(
  services: { readonly runtime: RuntimeService; readonly images: ImageService },
  socketPath: string,
): Promise<AsyncDisposable> {
  await mkdir(dirname(socketPath), { recursive: true, mode: 0o750 });
  return await serveUnix(socketPath, servedCri(services), { maxRequestBytes, maxConnections, callsAtOnce });
}
