import assert from "node:assert/strict";
import { once, setMaxListeners } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer, type Socket, type Server as TcpServer } from "node:net";
import { describe, test } from "node:test";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { type Clock, systemClock } from "../../ground/base/index.ts";
import type { ContainerId, PodUid } from "../../ground/model/index.ts";
import { HealthCheckRequest, HealthCheckResponse, HealthCheckResponse_ServingStatus } from "./gen/health.ts";
import { requestHeaders } from "./http/headers.ts";
import { urlOf } from "./http/url.ts";
import type { ExecInContainer } from "./ports.ts";
import { probeRunner } from "./run-probe.ts";
import { type ProbeTarget, probeUserAgent } from "./target.ts";

const never = new AbortController().signal;
const noExec: ExecInContainer = () => Promise.reject(new Error("no command was expected"));
const settings = { concurrency: 2, runtimeTimeoutMs: 120_000 };
const run = probeRunner(noExec, systemClock, settings);

async function listen(server: TcpServer): Promise<AsyncDisposable & { readonly port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}

async function closedPort(): Promise<number> {
  await using server = await listen(createServer());
  return server.port;
}

describe("HTTP", () => {
  for (const [code, outcome] of [
    [200, { type: "success" }],
    [204, { type: "success" }],
    [299, { type: "success" }],
    [302, { type: "warning", output: "Probe terminated redirects, Response body: secret" }],
    [399, { type: "warning", output: "Probe terminated redirects, Response body: secret" }],
    [400, { type: "failure", output: "HTTP probe failed with statuscode: 400" }],
    [404, { type: "failure", output: "HTTP probe failed with statuscode: 404" }],
    [503, { type: "failure", output: "HTTP probe failed with statuscode: 503" }],
  ] as const) {
    test(`status ${code}`, async () => {
      await using server = await listen(
        createHttpServer((_, response) => {
          response.writeHead(code, { location: "http://other.invalid/" }).end(code === 204 ? undefined : "secret");
        }),
      );
      const url = urlOf("http", "127.0.0.1", server.port, "/");
      assert.deepEqual(
        await run({ type: "http", url, headers: requestHeaders([], probeUserAgent) }, 10_000, never),
        outcome,
      );
    });
  }

  test("a refused connection is a failure, a body that does not come an error", async () => {
    const headers = requestHeaders([], probeUserAgent);
    const port = await closedPort();
    assert.deepEqual(await run({ type: "http", url: urlOf("http", "127.0.0.1", port, "/"), headers }, 10_000, never), {
      type: "failure",
      output: `Get "http://127.0.0.1:${port}/": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
    await using server = await listen(createHttpServer((_, response) => response.write("x")));
    const url = urlOf("http", "127.0.0.1", server.port, "/");
    assert.deepEqual(await run({ type: "http", url, headers }, 300, never), {
      type: "error",
      state: "failure",
      message: "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
    });
  });
});

describe("TCP", () => {
  test("success when the port accepts", async () => {
    await using server = await listen(createServer((socket) => socket.resume()));
    assert.deepEqual(await run({ type: "tcp", host: "127.0.0.1", port: server.port }, 10_000, never), {
      type: "success",
    });
  });

  test("the dial error when it does not", async () => {
    const port = await closedPort();
    assert.deepEqual(await run({ type: "tcp", host: "127.0.0.1", port }, 10_000, never), {
      type: "failure",
      output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  test("a timeout is a failure", async () => {
    // Timers fire before the network can answer.
    const impatient: Clock = {
      ...systemClock,
      after(_, action) {
        queueMicrotask(action);
        return { cancel() {} };
      },
    };
    await using server = await listen(createServer((socket) => socket.resume()));
    const { port } = server;
    assert.deepEqual(
      await probeRunner(noExec, impatient, settings)({ type: "tcp", host: "127.0.0.1", port }, 1, never),
      {
        type: "failure",
        output: `dial tcp 127.0.0.1:${port}: i/o timeout`,
      },
    );
  });

  test("an abort rejects at once", async () => {
    const stop = new AbortController();
    const pending = run({ type: "tcp", host: "127.0.0.1", port: await closedPort() }, 10_000, stop.signal);
    stop.abort(new Error("enough"));
    await assert.rejects(pending, /^Error: enough$/);
  });
});

describe("gRPC", () => {
  type Answer = (call: ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>) => {
    readonly code?: status;
    readonly details?: string;
    readonly serving?: HealthCheckResponse_ServingStatus;
  };

  async function serve(answer: Answer | "no health service" | "silent", port = 0) {
    const server = new Server();
    if (answer !== "no health service") {
      server.addService(
        {
          check: {
            path: "/grpc.health.v1.Health/Check",
            requestStream: false,
            responseStream: false,
            requestSerialize: (message: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(message).finish()),
            requestDeserialize: (bytes: Buffer) => HealthCheckRequest.decode(bytes),
            responseSerialize: (message: HealthCheckResponse) =>
              Buffer.from(HealthCheckResponse.encode(message).finish()),
            responseDeserialize: (bytes: Buffer) => HealthCheckResponse.decode(bytes),
          },
        },
        {
          check(
            call: ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>,
            callback: sendUnaryData<HealthCheckResponse>,
          ) {
            if (answer === "silent") return;
            const { code, details = "", serving = HealthCheckResponse_ServingStatus.SERVING } = answer(call);
            if (code === undefined) callback(null, { status: serving });
            else callback({ code, details });
          },
        },
      );
    }
    const bound = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, chosen) => {
        if (error === null) resolve(chosen);
        else reject(error);
      });
    });
    return {
      port: bound,
      async [Symbol.asyncDispose]() {
        server.forceShutdown();
      },
    };
  }

  const probe = (port: number, service = "", timeoutMs = 10_000) =>
    run({ type: "grpc", host: "127.0.0.1", port, service }, timeoutMs, never);

  test("asks for the service, by its user agent and authority, and is content with SERVING", async () => {
    let seen = "";
    await using server = await serve((call) => {
      seen = `${call.request.service} ${call.metadata.get("user-agent")} ${call.getHost()}`;
      return {};
    });
    assert.deepEqual(await probe(server.port, "web"), { type: "success" });
    assert.match(seen, new RegExp(`^web kube-probe/1\\.34 127\\.0\\.0\\.1:${server.port}$`));
  });

  for (const [name, value] of [
    ["UNKNOWN", 0],
    ["NOT_SERVING", 2],
    ["SERVICE_UNKNOWN", 3],
  ] as const) {
    test(`${name} is unhealthy`, async () => {
      await using server = await serve(() => ({ serving: value }));
      assert.deepEqual(await probe(server.port), {
        type: "failure",
        output: `service unhealthy (responded with "${name}")`,
      });
    });
  }

  test("an error of the health service", async () => {
    await using server = await serve(() => ({ code: status.NOT_FOUND, details: "unknown service" }));
    assert.deepEqual(await probe(server.port, "x"), {
      type: "failure",
      output: "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
    });
  });

  test("a server without the health service", async () => {
    await using server = await serve("no health service");
    const outcome = await probe(server.port);
    assert.ok(outcome.type === "failure");
    assert.match(
      outcome.output,
      /^error: this server does not implement the grpc health protocol \(grpc\.health\.v1\.Health\): /,
    );
  });

  test("a call that does not end", async () => {
    await using server = await serve("silent");
    assert.deepEqual(await probe(server.port, "", 300), {
      type: "failure",
      output: "timeout: health rpc did not complete within 300ms",
    });
  });

  test("nobody there", async () => {
    const port = await closedPort();
    assert.deepEqual(await probe(port, "", 300), {
      type: "failure",
      output: `timeout: failed to connect service "127.0.0.1:${port}" within 300ms: context deadline exceeded`,
    });
  });

  test("a server that comes up within the timeout is reached", async () => {
    // Whoever comes first is turned away, and finds another server when it comes again.
    const first = createServer((socket) => first.close() && socket.destroy());
    const { port } = await listen(first);
    const pending = probe(port);
    await once(first, "close");
    await using server = await serve(() => ({}), port);
    assert.equal(server.port, port);
    assert.deepEqual(await pending, { type: "success" });
  });

  test("an HTTP/2 server that knows no gRPC", async () => {
    const http = createHttp2Server((request, response) => {
      response.writeHead(request.method === "POST" ? 404 : 200).end();
    });
    await using server = await listen(http as unknown as TcpServer);
    assert.deepEqual(await probe(server.port), {
      type: "failure",
      output:
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " +
        "unexpected HTTP status code received from server: 404 (Not Found)",
    });
  });

  test("a server that answers something else than HTTP/2 is not connected to", async () => {
    await using server = await listen(
      createServer((socket) => {
        socket.on("error", () => {});
        socket.resume().end("HTTP/1.1 400 Bad Request\r\n\r\n");
      }),
    );
    const outcome = await probe(server.port, "", 300);
    assert.ok(outcome.type === "failure");
    assert.match(outcome.output, /^timeout: failed to connect service /);
  });

  test("a server that closes in the middle of the call", async () => {
    const http = createHttp2Server();
    http.on("stream", (stream) => stream.session?.destroy());
    await using server = await listen(http as unknown as TcpServer);
    const outcome = await probe(server.port);
    assert.ok(outcome.type === "failure");
    assert.match(outcome.output, /^error: health rpc probe failed: rpc error: code = Unavailable desc = ./);
  });

  test("a server that says goodbye and does not close the connection is left all the same", async () => {
    const settingsAndGoodbye = Buffer.from("0000000400000000000000080700000000000000000000000000", "hex");
    const server = createServer({ allowHalfOpen: true });
    const connected = once(server, "connection");
    await using listening = await listen(server);
    const probed = probe(listening.port);
    const socket: Socket = (await connected)[0];
    socket.on("error", () => {}).write(settingsAndGoodbye);
    assert.equal((await probed).type, "failure");
    // A connection that was only told of our end would take this for as long as we like.
    const writing = setInterval(() => socket.write("more"), 10);
    await new Promise((resolve) => socket.once("close", resolve));
    clearInterval(writing);
  });

  test("an abort rejects, connecting or waiting", async () => {
    await using server = await serve("silent");
    for (const port of [server.port, await closedPort()]) {
      const stop = new AbortController();
      const pending = run({ type: "grpc", host: "127.0.0.1", port, service: "" }, 60_000, stop.signal);
      await systemClock.sleep(50, never);
      stop.abort(new Error("enough"));
      await assert.rejects(pending, /^Error: enough$/);
    }
  });
});

describe("exec", () => {
  const target: ProbeTarget = {
    type: "exec",
    pod: "u1" as PodUid,
    id: "c1" as ContainerId,
    command: ["sh", "-c", 'echo "x"'],
  };
  const exited = (exitCode: number, stdout = "", stderr = "") =>
    ({ type: "exited", exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }) as const;

  for (const { name, exec, outcome } of [
    { name: "exit 0", exec: async () => exited(0, "out"), outcome: { type: "success" } },
    {
      name: "another exit code shows stdout, then stderr",
      exec: async () => exited(3, "out\n", "err\n"),
      outcome: { type: "failure", output: "out\nerr\n" },
    },
    {
      name: "output is cut at 10 KiB",
      exec: async () => exited(1, "o".repeat(9 * 1024), "e".repeat(9 * 1024)),
      outcome: { type: "failure", output: "o".repeat(9 * 1024) + "e".repeat(1024) },
    },
    {
      name: "timeout",
      exec: async () => ({ type: "timedOut" }) as const,
      outcome: { type: "failure", output: 'command timed out: "sh -c echo \\"x\\"" timed out after 2s' },
    },
    {
      name: "an error of the runtime says nothing about the container",
      exec: () => Promise.reject(new Error("container not running")),
      outcome: { type: "error", state: "unknown", message: "container not running" },
    },
  ] as const) {
    test(name, async () => {
      const clock = new FakeClock();
      assert.deepEqual(await probeRunner(exec, clock, settings)(target, 2_000, never), outcome);
      assert.equal(clock.pendingTimers, 0);
    });
  }

  test("the runtime gets command, timeout and a signal that fires with ours", async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    let seen: unknown[] = [];
    const exec: ExecInContainer = (id, command, timeoutMs, signal) => {
      seen = [id, command, timeoutMs];
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    };
    const pending = probeRunner(exec, clock, settings)(target, 2_000, stop.signal);
    await settle();
    assert.deepEqual(seen, ["c1", ["sh", "-c", 'echo "x"'], 2_000]);
    stop.abort(new Error("enough"));
    await assert.rejects(pending, /^Error: enough$/);
    assert.equal(clock.pendingTimers, 0);
  });

  test("a runtime that never answers counts as a timeout in the end", async () => {
    const clock = new FakeClock();
    let aborted = false;
    const exec: ExecInContainer = (_id, _command, _timeout, signal) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return new Promise(() => {});
    };
    const pending = probeRunner(exec, clock, settings)(target, 2_000, never);
    await clock.advance(121_999);
    assert.equal(aborted, false);
    await clock.advance(1);
    assert.equal((await pending).type, "failure");
    assert.equal(aborted, true);
    assert.equal(clock.pendingTimers, 0);
  });

  test("a command as long as a pod's spec is not repeated in full to whoever reads events", async () => {
    const long = { ...target, command: ["x".repeat(1_000_000)] };
    const exec: ExecInContainer = async () => ({ type: "timedOut" });
    const outcome = await probeRunner(exec, new FakeClock(), settings)(long, 2_000, never);
    assert.ok(outcome.type === "failure" && outcome.output.length < 11_000);
  });

  describe("commands that hang", () => {
    const started: string[] = [];
    const start = (clock: Clock) =>
      probeRunner(
        (id) => {
          started.push(id);
          return new Promise(() => {});
        },
        clock,
        { concurrency: 8, runtimeTimeoutMs: 120_000 },
      );
    const command = (pod: string, id = pod): ProbeTarget => ({
      type: "exec",
      pod: pod as PodUid,
      id: id as ContainerId,
      command: [],
    });

    test("of one pod leave turns to the others", async () => {
      started.length = 0;
      const clock = new FakeClock();
      const limited = start(clock);
      const stop = new AbortController();
      setMaxListeners(0, stop.signal);
      const hanging = Array.from({ length: 80 }, (_, index) =>
        limited(command("bad", `bad${index}`), 30_000, stop.signal),
      );
      const good = ["a", "b", "c"].map((pod) => limited(command(pod), 30_000, stop.signal));
      const settled = Promise.allSettled([...hanging, ...good]);
      await settle();
      assert.deepEqual(started, ["bad0", "bad1", "a", "b", "c"]);
      await clock.advance(1_000);
      assert.deepEqual(started.slice(5), ["bad2", "bad3"]);
      stop.abort(new Error("enough"));
      await settled;
      assert.equal(clock.pendingTimers, 0);
    });

    test("of many pods make another wait for a second at most", async () => {
      started.length = 0;
      const clock = new FakeClock();
      const limited = start(clock);
      const stop = new AbortController();
      setMaxListeners(0, stop.signal);
      const pods = Array.from({ length: 60 }, (_, index) => `bad${index}`);
      const hanging = pods.flatMap((pod) => [
        limited(command(pod), 30_000, stop.signal),
        limited(command(pod), 30_000, stop.signal),
      ]);
      await settle();
      assert.equal(started.length, 8);
      const good = limited(command("good"), 30_000, stop.signal);
      const settled = Promise.allSettled([...hanging, good]);
      await clock.advance(1_000);
      assert.ok(started.includes("good"));
      stop.abort(new Error("enough"));
      await settled;
      assert.equal(clock.pendingTimers, 0);
    });
  });
});
