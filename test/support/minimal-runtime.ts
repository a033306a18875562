import { CgroupDriver } from "../../src/cri/index.ts";
import { type ServedRuntime, serveRuntime } from "../../src/hollow/index.ts";

/** A runtime that answers the handshake and has nothing else: enough for an agent without pods. */
export async function serveMinimalRuntime(socketPath: string): Promise<ServedRuntime> {
  return await serveRuntime(
    {
      runtime: {
        version: async () => ({
          version: "0.1.0",
          runtimeName: "minimal",
          runtimeVersion: "1.2.3",
          runtimeApiVersion: "v1",
        }),
        runtimeConfig: async () => ({ linux: { cgroupDriver: CgroupDriver.CGROUPFS } }),
      },
      images: { imageFsInfo: async () => ({ imageFilesystems: [], containerFilesystems: [] }) },
    },
    socketPath,
  );
}
