import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serveRuntime } from "../../beside/hollow/index.ts";
import { type Clock, systemClock } from "../../ground/base/index.ts";
import type { CallReport } from "./call-log.ts";
import { CriClient } from "./client.ts";
import { CriError } from "./errors.ts";
import { Container, ContainerEventResponse, PullImageRequest, type VersionResponse } from "./gen/index.ts";
import type { CriServices } from "./served.ts";

const version: VersionResponse = { version: "0.1.0", runtimeName: "r", runtimeVersion: "1", runtimeApiVersion: "v1" };
const never = new Promise<never>(() => {});

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "cri-client-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

interface Setup {
  readonly requestTimeoutMs?: number;
  readonly clock?: Clock;
  readonly onCall?: (report: CallReport) => void;
}

/** A client of the services, which the test may kill and start again. */
async function connect(t: TestContext, services: CriServices, setup: Setup = {}) {
  const socketPath = join(await folder(t), "runtime.sock");
  let server = await serveRuntime(services, socketPath);
  const { requestTimeoutMs = 60_000, clock = systemClock, onCall = () => {} } = setup;
  const client = new CriClient({ runtimeEndpoint: server.endpoint, requestTimeoutMs }, { clock, onCall });
  t.after(async () => {
    client.close();
    await server.kill();
  });
  const restart = async (): Promise<void> => {
    server = await serveRuntime(services, socketPath);
  };
  return { client, kill: () => server.kill(), restart };
}

function hasCode(code: string, operation: string) {
  return (error: unknown): boolean =>
    error instanceof CriError &&
    error.code === code &&
    error.operation === operation &&
    !/rpc error|^\d+ /.test(error.message);
}

test("requests and responses cross the socket, bytes and 64-bit numbers included", async (t) => {
  const { client } = await connect(t, {
    runtime: {
      execSync: async ({ containerId, cmd, timeout }) => ({
        stdout: Buffer.from([0, 255]),
        stderr: Buffer.from(`${containerId} ${cmd.join(" ")} ${timeout}`),
        exitCode: -3,
      }),
    },
  });
  const { stdout, stderr, exitCode } = await client.runtime.execSync({
    containerId: "c",
    cmd: ["a", "b"],
    timeout: 2n ** 40n,
  });
  assert.deepEqual([...stdout], [0, 255]);
  assert.equal(stderr.toString(), `c a b ${2n ** 40n}`);
  assert.equal(exitCode, -3);
});

test("errors keep their code and the runtime's own words; what the runtime lacks is Unimplemented", async (t) => {
  const { client } = await connect(t, {
    runtime: {
      stopContainer: async () => {
        throw new CriError("NotFound", "stopContainer", 'an error occurred when try to find container "x": not found');
      },
    },
  });
  const error = await client.runtime.stopContainer({ containerId: "x", timeout: 0n }).catch((error: unknown) => error);
  assert.ok(hasCode("NotFound", "stopContainer")(error));
  assert.equal((error as Error).message, 'an error occurred when try to find container "x": not found');
  await assert.rejects(client.runtime.runtimeConfig({}), hasCode("Unimplemented", "runtimeConfig"));
  await assert.rejects(client.images.listImages({ filter: undefined }), hasCode("Unimplemented", "listImages"));
});

test("a response that lacks what CRI requires is an error", async (t) => {
  const { client } = await connect(t, { runtime: { version: async () => ({ ...version, runtimeName: "" }) } });
  await assert.rejects(client.runtime.version({ version: "" }), hasCode("InvalidResponse", "version"));
});

test("no socket: calls fail at once as Unavailable", async (t) => {
  const runtimeEndpoint = `unix://${await folder(t)}/absent.sock`;
  const client = new CriClient({ runtimeEndpoint, requestTimeoutMs: 60_000 }, { clock: systemClock });
  t.after(() => client.close());
  await assert.rejects(client.runtime.version({ version: "" }), hasCode("Unavailable", "version"));
});

test("the deadline of the operation ends a call the runtime never answers, and tells the runtime", async (t) => {
  const cancelled = withResolvers<void>();
  const { client } = await connect(
    t,
    {
      runtime: {
        version: async (_request, options) => {
          options?.signal?.addEventListener("abort", () => cancelled.resolve());
          return await never;
        },
      },
    },
    { requestTimeoutMs: 50 },
  );
  await assert.rejects(client.runtime.version({ version: "" }), hasCode("DeadlineExceeded", "version"));
  await cancelled.promise;
});

test("timeoutMs of the call goes before the deadline of the operation", async (t) => {
  const { client } = await connect(t, { images: { pullImage: async () => await never } });
  const pull = client.images.pullImage(PullImageRequest.fromPartial({}), { timeoutMs: 30 });
  await assert.rejects(pull, hasCode("DeadlineExceeded", "pullImage"));
});

test("aborting a call rejects it with the reason, reaches the runtime and leaves no listener behind", async (t) => {
  const arrived = withResolvers<AbortSignal | undefined>();
  const { client } = await connect(t, {
    images: {
      pullImage: async (_request, options) => {
        arrived.resolve(options?.signal);
        return await never;
      },
    },
    runtime: { version: async () => version },
  });
  const stopping = new AbortController();
  const { signal } = stopping;
  const pull = client.images.pullImage(PullImageRequest.fromPartial({}), { signal });
  const atServer = await arrived.promise;
  assert.ok(atServer !== undefined);
  const reason = new Error("pod deleted");
  const outcome = assert.rejects(pull, reason);
  stopping.abort(reason);
  await outcome;
  if (!atServer.aborted) await once(atServer, "abort");
  await assert.rejects(client.runtime.version({ version: "" }, { signal }), reason);
  const living = new AbortController();
  await client.runtime.version({ version: "" }, { signal: living.signal });
  assert.equal(getEventListeners(living.signal, "abort").length, 0);
});

test("one hung call blocks no other, not even hung lists", async (t) => {
  const quick: Clock = { ...systemClock, after: (ms, action) => systemClock.after(ms / 100, action) };
  const { client } = await connect(
    t,
    {
      runtime: {
        listContainers: async ({ filter }) => (filter?.id === "hang" ? await never : { containers: [] }),
        listPodSandbox: async () => ({ items: [] }),
        startContainer: async () => await never,
        version: async () => version,
      },
    },
    { clock: quick },
  );
  const stopping = new AbortController();
  const filter = { id: "hang", state: undefined, podSandboxId: "", labelSelector: {} };
  const hung = [
    client.runtime.startContainer({ containerId: "x" }, { signal: stopping.signal }),
    ...Array.from({ length: 6 }, () => client.runtime.listContainers({ filter }, { signal: stopping.signal })),
  ].map((call) =>
    call.then(
      () => "answered",
      () => "given up",
    ),
  );
  await client.runtime.version({ version: "" });
  assert.deepEqual(await client.runtime.listPodSandbox({ filter: undefined }), { items: [] });
  assert.deepEqual(await client.runtime.listContainers({ filter: undefined }), { containers: [] });
  const { pending, lastAnswerAt } = client.health();
  assert.equal(pending.length, 7);
  assert.equal(pending[0]?.operation, "startContainer");
  assert.ok(lastAnswerAt !== undefined);
  stopping.abort();
  assert.deepEqual(new Set(await Promise.all(hung)), new Set(["given up"]));
  assert.deepEqual(client.health().pending, []);
});

test("few big lists run at once, all are answered", async (t) => {
  let running = 0;
  let most = 0;
  const { client } = await connect(t, {
    runtime: {
      listContainers: async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return { containers: [] };
      },
    },
  });
  await Promise.all(Array.from({ length: 30 }, () => client.runtime.listContainers({ filter: undefined })));
  assert.ok(most <= 4, `${most} at once`);
});

test("responses up to 16 MiB are taken, larger ones are ResourceExhausted", async (t) => {
  let bytes = 15 * 1024 * 1024;
  const { client } = await connect(t, {
    runtime: {
      listContainers: async () => ({ containers: [Container.fromPartial({ labels: { big: "x".repeat(bytes) } })] }),
    },
  });
  const { containers } = await client.runtime.listContainers({ filter: undefined });
  assert.equal(containers[0]?.labels["big"]?.length, bytes);
  bytes = 17 * 1024 * 1024;
  await assert.rejects(
    client.runtime.listContainers({ filter: undefined }),
    hasCode("ResourceExhausted", "listContainers"),
  );
});

test("every call is reported when it ends: duration, metric name, error, cancellation", async (t) => {
  const reports: CallReport[] = [];
  const { client } = await connect(
    t,
    {
      runtime: {
        version: async () => version,
        startContainer: async () => {
          throw new CriError("Unknown", "startContainer", "no");
        },
        stopContainer: async () => await never,
      },
    },
    { onCall: (report) => reports.push(report) },
  );
  await client.runtime.version({ version: "" });
  await assert.rejects(client.runtime.startContainer({ containerId: "x" }));
  const stopping = new AbortController();
  const stop = client.runtime.stopContainer({ containerId: "x", timeout: 0n }, { signal: stopping.signal });
  stopping.abort();
  await assert.rejects(stop);
  assert.deepEqual(
    reports.map(({ operationType, error, cancelled }) => [
      operationType,
      (error as CriError | undefined)?.code,
      cancelled,
    ]),
    [
      ["version", undefined, false],
      ["start_container", "Unknown", false],
      ["stop_container", (stopping.signal.reason as { code: number }).code, true],
    ],
  );
  assert.ok(reports.every(({ durationMs }) => durationMs >= 0));
  const { lastFailure, unansweredInARow } = client.health();
  assert.equal(lastFailure?.operation, "startContainer", "a call we gave up says nothing about the runtime");
  assert.equal(unansweredInARow, 0, "a refusal is an answer");
});

test("checkpoint: the request carries the time allowed, a negative time is refused", async (t) => {
  const { client } = await connect(t, {
    runtime: {
      checkpointContainer: async ({ timeout }) => {
        throw new CriError("Unknown", "checkpointContainer", `timeout ${timeout}`);
      },
    },
  });
  const checkpoint = (timeout: bigint) =>
    client.runtime.checkpointContainer({ containerId: "c", location: "/x", timeout });
  await assert.rejects(checkpoint(0n), { message: "timeout 60" });
  await assert.rejects(checkpoint(90n), { message: "timeout 90" });
  await assert.rejects(checkpoint(-1n), hasCode("InvalidArgument", "checkpointContainer"));
});

test("the event stream: items, the server's end, leaving early, abort", async (t) => {
  const signals: (AbortSignal | undefined)[] = [];
  let ends = true;
  const { client } = await connect(t, {
    runtime: {
      async *getContainerEvents(_request, options) {
        signals.push(options?.signal);
        yield ContainerEventResponse.fromPartial({ containerId: "a" });
        yield ContainerEventResponse.fromPartial({ containerId: "b" });
        if (!ends) await never;
      },
    },
  });
  const ids: string[] = [];
  for await (const { containerId } of client.runtime.getContainerEvents({})) ids.push(containerId);
  assert.deepEqual(ids, ["a", "b"]);
  ends = false;
  for await (const { containerId } of client.runtime.getContainerEvents({})) if (containerId === "a") break;
  const left = signals[1];
  assert.ok(left !== undefined);
  if (!left.aborted) await once(left, "abort");
  const stopping = new AbortController();
  const reading = (async () => {
    for await (const { containerId } of client.runtime.getContainerEvents({}, { signal: stopping.signal }))
      if (containerId === "b") stopping.abort();
  })();
  await assert.rejects(reading, (error) => error === stopping.signal.reason);
  assert.equal(getEventListeners(stopping.signal, "abort").length, 0);
  assert.deepEqual(client.health().pending, []);
});

test("a killed runtime fails the calls in flight as Unavailable; the same client works once it is back", async (t) => {
  const { client, kill, restart } = await connect(t, {
    runtime: { version: async () => version, startContainer: async () => await never },
  });
  await client.runtime.version({ version: "" });
  const inFlight = Array.from({ length: 20 }, () => client.runtime.startContainer({ containerId: "x" }));
  const outcomes = Promise.allSettled(inFlight);
  await client.runtime.version({ version: "" });
  await kill();
  for (const outcome of await outcomes) {
    assert.ok(outcome.status === "rejected" && hasCode("Unavailable", "startContainer")(outcome.reason));
  }
  await assert.rejects(client.runtime.version({ version: "" }), hasCode("Unavailable", "version"));
  assert.ok(client.health().unansweredInARow > 0);
  await restart();
  const startedAt = performance.now();
  while ((await client.runtime.version({ version: "" }).catch(() => undefined)) === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  t.diagnostic(`back after ${Math.round(performance.now() - startedAt)} ms`);
  assert.equal(client.health().unansweredInARow, 0);
});

test("closing fails the calls in flight and those to come, and leaves nothing behind", async (t) => {
  const { client } = await connect(t, {
    runtime: {
      version: async () => version,
      startContainer: async () => await never,
      async *getContainerEvents() {
        yield await never;
      },
    },
  });
  const call = client.runtime.startContainer({ containerId: "x" });
  const stream = client.runtime.getContainerEvents({})[Symbol.asyncIterator]().next();
  const outcomes = [
    assert.rejects(call, hasCode("Canceled", "startContainer")),
    assert.rejects(stream, hasCode("Canceled", "getContainerEvents")),
  ];
  await client.runtime.version({ version: "" });
  client.close();
  await Promise.all(outcomes);
  await assert.rejects(client.runtime.version({ version: "" }), hasCode("Canceled", "version"));
  assert.deepEqual(client.health().pending, []);
});

test("the image service has its own endpoint and its own connection", async (t) => {
  const directory = await folder(t);
  const runtime = await serveRuntime({ runtime: { version: async () => version } }, join(directory, "runtime.sock"));
  const images = await serveRuntime(
    { images: { listImages: async () => ({ images: [] }) } },
    join(directory, "images.sock"),
  );
  const client = new CriClient(
    { runtimeEndpoint: runtime.endpoint, imageEndpoint: images.endpoint, requestTimeoutMs: 60_000 },
    { clock: systemClock },
  );
  t.after(async () => {
    client.close();
    await Promise.all([runtime.kill(), images.kill()]);
  });
  await client.runtime.version({ version: "" });
  assert.deepEqual(await client.images.listImages({ filter: undefined }), { images: [] });
  await runtime.kill();
  assert.deepEqual(await client.images.listImages({ filter: undefined }), { images: [] });
});

test("requests go out with the authority Go servers accept", async (t) => {
  const socketPath = join(await folder(t), "raw.sock");
  const server = createServer();
  const authority = withResolvers<string | undefined>();
  server.on("stream", (stream, headers) => {
    authority.resolve(headers[":authority"]);
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" }, { endStream: true });
  });
  server.listen(socketPath);
  await once(server, "listening");
  const client = new CriClient(
    { runtimeEndpoint: `unix://${socketPath}`, requestTimeoutMs: 60_000 },
    { clock: systemClock },
  );
  t.after(() => {
    client.close();
    server.close();
  });
  await assert.rejects(client.runtime.version({ version: "" }), hasCode("Unimplemented", "version"));
  assert.equal(await authority.promise, "localhost");
});

function withResolvers<Value>() {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
