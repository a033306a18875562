import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ContainerState,
  ContainerStatus,
  ImageServiceDefinition,
  KeyValue,
  PodSandboxConfig,
  type RuntimeService,
  RuntimeServiceDefinition,
} from "./index.ts";

test("the services have every method of CRI v1 and only the event stream is a stream", () => {
  const methods = Object.values(RuntimeServiceDefinition.methods);
  assert.equal(methods.length, 30);
  assert.equal(Object.values(ImageServiceDefinition.methods).length, 5);
  assert.deepEqual(
    methods.filter((method) => method.responseStream).map((method) => method.name),
    ["GetContainerEvents"],
  );
});

test("a message is built from its parts and survives the wire, 64-bit numbers included", () => {
  const createdAt = 1_800_000_000_123_456_789n;
  const status = ContainerStatus.fromPartial({
    id: "abc",
    state: ContainerState.CONTAINER_EXITED,
    createdAt,
    exitCode: -1,
    labels: { "io.kubernetes.pod.name": "web" },
    metadata: { name: "c", attempt: 3 },
  });
  const decoded = ContainerStatus.decode(ContainerStatus.encode(status).finish());
  assert.deepEqual(decoded, status);
  assert.equal(decoded.createdAt, createdAt);
});

test("known bytes: field numbers and wire types are those of CRI", () => {
  const config = PodSandboxConfig.fromPartial({
    metadata: { name: "n", uid: "u", namespace: "s", attempt: 2 },
    linux: { cgroupParent: "/p" },
  });
  const bytes = Buffer.from(PodSandboxConfig.encode(config).finish()).toString("hex");
  assert.equal(bytes, "0a0b0a016e1201751a01732002" + "42040a022f70");
  const value = KeyValue.fromPartial({ key: "K", value: Buffer.from([0xff, 0x00]) });
  assert.equal(Buffer.from(KeyValue.encode(value).finish()).toString("hex"), "0a014b1202ff00");
});

test("the derived interface takes the request and gives the response of each method", async () => {
  const versionOf: Pick<RuntimeService, "version" | "getContainerEvents"> = {
    version: async (request) => ({
      version: request.version,
      runtimeName: "r",
      runtimeVersion: "1",
      runtimeApiVersion: "v1",
    }),
    getContainerEvents: async function* () {},
  };
  assert.equal((await versionOf.version({ version: "0.1.0" })).version, "0.1.0");
  for await (const event of versionOf.getContainerEvents({})) assert.fail(`unexpected event ${event.containerId}`);
});
