import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { startShim } from "../../src/beside/dockershim/index.ts";
import { CriClient } from "../../src/connections/cri/index.ts";
import { never, silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { criContract } from "../contract/cri-contract.ts";
import { startDocker } from "../support/dockerd.ts";

criContract("docker", async () => {
  const docker = await startDocker();
  const { layout } = docker;
  const shim = await startShim(docker.shimSettings, { clock: systemClock, log: silentLogger, env: process.env }, never);
  const client = new CriClient(
    { runtimeEndpoint: layout.shimEndpoint, requestTimeoutMs: 120_000 },
    { clock: systemClock },
  );
  const directory = join(layout.stateDir, "contract");
  await mkdir(directory);
  return {
    runtime: client.runtime,
    images: client.images,
    image: docker.images.busybox,
    directory,
    cgroupParent: layout.cgroupRoot,
    async [Symbol.asyncDispose]() {
      client.close();
      await shim[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
    },
  };
});
