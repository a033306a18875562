import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeRuntime, serveRuntime } from "../../src/beside/hollow/index.ts";
import { CriClient } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { criContract } from "./cri-contract.ts";

const image = "localhost/contract/busybox:1";

async function makeFake() {
  const directory = await mkdtemp(join(tmpdir(), "cri-contract-"));
  const fake = new FakeRuntime({
    clock: systemClock,
    events: "offered",
    unknownPrograms: "failToStart",
    unknownImages: "absent",
    handlers: [{ name: "" }],
    streamingBaseUrl: "http://127.0.0.1:1",
  });
  fake.imageStore.preload(image);
  return { directory, fake, common: { image, directory, cgroupParent: "/contract" } };
}

criContract("FakeRuntime", async () => {
  const { directory, fake, common } = await makeFake();
  // Without sockets, nothing but the simulated processes' timers is left, and those keep no process alive.
  const awake = setInterval(() => {}, 60_000);
  return {
    ...common,
    runtime: fake.runtime,
    images: fake.images,
    async [Symbol.asyncDispose]() {
      clearInterval(awake);
      await rm(directory, { recursive: true });
    },
  };
});

criContract("FakeRuntime behind gRPC", async () => {
  const { directory, fake, common } = await makeFake();
  const server = await serveRuntime(fake, join(directory, "runtime.sock"));
  const client = new CriClient({ runtimeEndpoint: server.endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
  return {
    ...common,
    runtime: client.runtime,
    images: client.images,
    containerdEvents: client.containerdEvents.bind(client),
    async [Symbol.asyncDispose]() {
      client.close();
      await server.kill();
      await rm(directory, { recursive: true });
    },
  };
});
