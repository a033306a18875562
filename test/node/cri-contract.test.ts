import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { CriClient } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { criContract } from "../contract/cri-contract.ts";
import { startContainerd } from "../support/containerd.ts";

criContract("containerd", async () => {
  const containerd = await startContainerd();
  const client = new CriClient(
    { runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 },
    { clock: systemClock },
  );
  const directory = join(containerd.stateDir, "contract");
  await mkdir(directory);
  return {
    runtime: client.runtime,
    images: client.images,
    containerdEvents: client.containerdEvents.bind(client),
    image: containerd.images.busybox,
    directory,
    cgroupParent: containerd.cgroupRoot,
    async [Symbol.asyncDispose]() {
      client.close();
      await containerd[Symbol.asyncDispose]();
    },
  };
});
