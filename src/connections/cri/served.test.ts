import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serveUnix, UnixChannel } from "../../ground/grpc/index.ts";
import { CriError, ImageServiceDefinition } from "./index.ts";
import { servedCri } from "./served.ts";

for (const { what, message } of [
  { what: "of plain letters", message: "x".repeat(4_000_000) },
  { what: "of which each sign takes nine on the wire", message: "€".repeat(200_000) },
]) {
  test(`a failure that says too much for a head of HTTP is told all the same: ${what}`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "served-cri-"));
    const socketPath = join(directory, "s.sock");
    const images = {
      pullImage: async (): Promise<never> => {
        throw new CriError("NotFound", "pullImage", message);
      },
    };
    const settings = { maxRequestBytes: 1024, maxConnections: 1 };
    const channel = new UnixChannel(socketPath, (_, error) => error);
    try {
      await using _ = await serveUnix(socketPath, servedCri({ images }), settings);
      const call = { operation: "pullImage", deadline: Date.now() + 5_000, signal: undefined };
      const { fullName, methods } = ImageServiceDefinition;
      const request = methods.pullImage.requestType.fromPartial({});
      const asked = channel.unary(fullName, methods.pullImage, request, call);
      await assert.rejects(asked, { code: "NotFound", message: /^(x{1000}|€{1000})/ });
    } finally {
      channel.close();
      await rm(directory, { recursive: true });
    }
  });
}
