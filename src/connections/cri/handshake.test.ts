import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { FakeRuntime, serveRuntime } from "../../beside/hollow/index.ts";
import type { LogFields, Logger } from "../../ground/base/index.ts";
import { silentLogger, systemClock } from "../../ground/base/index.ts";
import { CriClient } from "./client.ts";
import { CriError } from "./errors.ts";
import { ImageFsInfoResponse, type VersionResponse } from "./gen/index.ts";
import { RuntimeHandshake, UnsupportedRuntimeError } from "./handshake.ts";

const good: VersionResponse = {
  version: "0.1.0",
  runtimeName: "containerd",
  runtimeVersion: "1.6.20",
  runtimeApiVersion: "v1",
};

function shake() {
  const clock = new FakeClock();
  const warnings: (LogFields | undefined)[] = [];
  const log: Logger = { ...silentLogger, warn: (_message, fields) => warnings.push(fields) };
  const failures: { runtime: Error | undefined; images: Error | undefined } = {
    runtime: new CriError("Unavailable", "version", "connect ENOENT /run/x.sock"),
    images: undefined,
  };
  let answer = good;
  const handshake = new RuntimeHandshake({
    clock,
    log,
    runtime: {
      async version() {
        if (failures.runtime !== undefined) throw failures.runtime;
        return answer;
      },
    },
    images: {
      async imageFsInfo() {
        if (failures.images !== undefined) throw failures.images;
        return ImageFsInfoResponse.fromPartial({});
      },
    },
  });
  const answerWith = (response: VersionResponse): void => {
    answer = response;
  };
  return { clock, warnings, failures, handshake, answerWith };
}

test("a runtime that is not there yet is waited for, in a state and log people can read", async () => {
  const { clock, warnings, failures, handshake } = shake();
  const stopping = new AbortController();
  assert.deepEqual(handshake.state, { phase: "idle" });
  const since = clock.now();
  const identity = handshake.run(stopping.signal);
  await clock.advance(29_900);
  const { state } = handshake;
  assert.deepEqual(state, { phase: "connecting", since, attempts: 60, lastError: "connect ENOENT /run/x.sock" });
  assert.equal(warnings.length, 2, "logged at once and every 15 s, not at every attempt");
  failures.runtime = undefined;
  failures.images = new CriError("Unavailable", "imageFsInfo", "connect ENOENT /run/images.sock");
  await clock.advance(500);
  assert.equal(handshake.state.phase === "connecting" && handshake.state.lastError, "connect ENOENT /run/images.sock");
  failures.images = undefined;
  await clock.advance(500);
  assert.deepEqual(await identity, { name: "containerd", version: "1.6.20", apiVersion: "v1" });
  assert.equal(handshake.state.phase, "ready");
  assert.equal(clock.pendingTimers, 0);
});

test("another contract version is refused for good", async () => {
  const { failures, handshake, answerWith } = shake();
  failures.runtime = undefined;
  answerWith({ ...good, version: "0.2.0" });
  await assert.rejects(
    handshake.run(new AbortController().signal),
    (error) =>
      error instanceof UnsupportedRuntimeError &&
      error.found === "0.2.0" &&
      error.message.startsWith("runtime api version is not supported"),
  );
  assert.equal(handshake.state.phase, "refused");
});

test("a socket without CRI is waited for too, with the likely reason", async () => {
  const { clock, failures, handshake } = shake();
  failures.runtime = new CriError("Unimplemented", "version", "unknown service runtime.v1.RuntimeService");
  const stopping = new AbortController();
  const outcome = assert.rejects(handshake.run(stopping.signal), { name: "AbortError" });
  await clock.advance(1_000);
  assert.match(
    (handshake.state.phase === "connecting" && handshake.state.lastError) || "",
    /unknown service.*disabled_plugins/,
  );
  stopping.abort();
  await outcome;
  assert.equal(clock.pendingTimers, 0);
});

test("over a real socket: started before the runtime, the agent finds it once it listens", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cri-handshake-"));
  const socketPath = join(directory, "runtime.sock");
  const client = new CriClient(
    { runtimeEndpoint: `unix://${socketPath}`, requestTimeoutMs: 60_000 },
    { clock: systemClock },
  );
  const { runtime, images } = client;
  const handshake = new RuntimeHandshake({ runtime, images, clock: systemClock, log: silentLogger });
  const identity = handshake.run(AbortSignal.timeout(60_000));
  while (handshake.state.phase !== "connecting" || handshake.state.lastError === undefined) await settle();
  assert.match(handshake.state.lastError, /cannot reach the container runtime: connect ENOENT .*runtime\.sock/);
  const server = await serveRuntime(new FakeRuntime({ clock: systemClock, version: "9.9.9" }), socketPath);
  t.after(async () => {
    client.close();
    await server.kill();
    await rm(directory, { recursive: true });
  });
  assert.equal((await identity).version, "9.9.9");
});
