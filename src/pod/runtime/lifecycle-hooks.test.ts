import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { Ledger, TaskScope } from "../../ground/base/index.ts";
import type {
  Container,
  ContainerId,
  IdentifiedPod,
  LifecycleHandler,
  PodStep,
  PodUid,
} from "../../ground/model/index.ts";
import type { ExecInContainer, ExecResult } from "../probes/index.ts";
import { type HookResult, LifecycleHooks } from "./lifecycle-hooks.ts";

const never = new AbortController().signal;
const id = "c1" as ContainerId;
const inPod = 'for Container "web" in Pod "p_ns(u1)" failed - error:';

/** Hooks wired to a pod at 127.0.0.1 whose commands are answered by `exec`. */
class Node implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly scope = new TaskScope();
  readonly ledger = new Ledger<PodUid, PodStep>(this.clock);
  readonly events: string[] = [];
  readonly hooks: LifecycleHooks;
  ips: readonly string[] = ["127.0.0.1"];

  constructor(exec: ExecInContainer = () => Promise.reject(new Error("no command was expected"))) {
    this.hooks = new LifecycleHooks({
      clock: this.clock,
      scope: this.scope,
      ledger: this.ledger,
      exec,
      podIps: async () => this.ips,
      recordEvent: (_, { type, reason, message, fieldPath = "pod" }) => {
        this.events.push(`${type} ${reason} ${fieldPath}: ${message}`);
      },
    });
  }

  postStart(handler: LifecycleHandler, signal = never, rest: Partial<Container> = {}): Promise<HookResult> {
    const container: Container = { name: "web", lifecycle: { postStart: handler }, ...rest };
    return this.hooks.postStart({ pod: podOf(container), container, id }, signal);
  }

  preStop(handler: LifecycleHandler, signal = never): Promise<void> {
    const container: Container = { name: "web", lifecycle: { preStop: handler } };
    return this.hooks.preStop({ pod: podOf(container), container, id }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
    assert.equal(this.clock.pendingTimers, 0, "a timer was left behind");
  }
}

function podOf(container: Container): IdentifiedPod {
  return { metadata: { name: "p", namespace: "ns", uid: "u1" }, spec: { containers: [container] } };
}

async function serve(listener: RequestListener): Promise<AsyncDisposable & { readonly port: number }> {
  const server: Server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const exited = (exitCode: number, stdout = "", stderr = ""): ExecResult => ({
  type: "exited",
  exitCode,
  stdout: Buffer.from(stdout),
  stderr: Buffer.from(stderr),
});

test("a container without hooks has nothing to wait for", async () => {
  await using node = new Node();
  const container: Container = { name: "web" };
  const run = { pod: podOf(container), container, id };
  assert.deepEqual(await node.hooks.postStart(run, never), { type: "done" });
  await node.hooks.preStop(run, never);
  assert.equal(node.ledger.read("u1" as PodUid), undefined);
});

describe("exec", () => {
  test("runs the command as written, without a timeout", async () => {
    let seen: unknown;
    await using node = new Node(async (container, command, timeoutMs) => {
      seen = { container, command, timeoutMs };
      return exited(0, "fine");
    });
    assert.deepEqual(await node.postStart({ exec: { command: ["echo", "$(HOME)"] } }), { type: "done" });
    assert.deepEqual(seen, { container: "c1", command: ["echo", "$(HOME)"], timeoutMs: 0 });
    assert.deepEqual(node.events, []);
  });

  for (const { name, exec, message } of [
    {
      name: "a command that fails",
      exec: async () => exited(3, "out\n", 'no "x"\n'),
      message: `Exec lifecycle hook ([sh -c exit 3]) ${inPod} command 'sh -c exit 3' exited with 3: no "x"\n, message: "out\\nno \\"x\\"\\n"`,
    },
    {
      name: "a runtime that fails",
      exec: () => Promise.reject(new Error("container not running")),
      message: `Exec lifecycle hook ([sh -c exit 3]) ${inPod} container not running, message: ""`,
    },
    {
      name: "a runtime that gives up",
      exec: async () => ({ type: "timedOut" }) as const,
      message: `Exec lifecycle hook ([sh -c exit 3]) ${inPod} command "sh -c exit 3" timed out, message: ""`,
    },
  ]) {
    test(name, async () => {
      await using node = new Node(exec);
      const result = await node.postStart({ exec: { command: ["sh", "-c", "exit 3"] } });
      assert.deepEqual(result, { type: "failed", message });
      assert.deepEqual(node.events, ["Warning FailedPostStartHook spec.containers{web}: PostStartHook failed"]);
    });
  }

  test("an abort rejects and is no failure of the hook", async () => {
    const stop = new AbortController();
    await using node = new Node(
      (_id, _command, _timeout, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    const pending = node.postStart({ exec: { command: ["sleep", "9"] } }, stop.signal);
    stop.abort(new Error("enough"));
    await assert.rejects(pending, /^Error: enough$/);
    assert.deepEqual(node.events, []);
  });

  test("a command that is never answered fails soon after its container has ended", async () => {
    await using node = new Node(
      (_id, _command, _timeout, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    const ended = new AbortController();
    const container: Container = { name: "web", lifecycle: { postStart: { exec: { command: ["warm", "up"] } } } };
    let result: HookResult | undefined;
    const run = { pod: podOf(container), container, id, containerEnded: ended.signal };
    const pending = node.hooks.postStart(run, never).then((given) => {
      result = given;
    });
    await node.clock.advance(3_600_000);
    assert.equal(result, undefined, "as long as the container runs, it is waited for");
    ended.abort();
    await node.clock.advance(10_000);
    await pending;
    assert.deepEqual(result, {
      type: "failed",
      message: `Lifecycle hook ${inPod} container terminated before it finished`,
    });
  });
});

describe("httpGet", () => {
  test("any answer is a success", async () => {
    const seen: string[] = [];
    await using server = await serve((request, response) => {
      const { "user-agent": agent, accept, "x-id": own } = request.headers;
      seen.push(`${request.method} ${request.url} ${agent} ${accept} ${own}`);
      response.writeHead(500).end("trouble");
    });
    await using node = new Node();
    const httpGet = { port: "http", path: "/hello?x=1", httpHeaders: [{ name: "X-Id", value: "7" }] };
    const ports = [{ name: "http", containerPort: server.port }];
    assert.deepEqual(await node.postStart({ httpGet }, never, { ports }), { type: "done" });
    assert.deepEqual(seen, ["GET /hello?x=1 kube-lifecycle/1.34 */* 7"]);
    assert.deepEqual(node.events, []);
  });

  test("a redirect elsewhere is an answer, too", async () => {
    await using server = await serve((_, response) => {
      response.writeHead(302, { location: "http://other.invalid/" }).end();
    });
    await using node = new Node();
    assert.deepEqual(await node.postStart({ httpGet: { port: server.port } }), { type: "done" });
  });

  test("goes to the host it names, otherwise to the pod, which must have an address", async () => {
    await using server = await serve((_, response) => response.end());
    await using node = new Node();
    node.ips = [];
    assert.deepEqual(await node.postStart({ httpGet: { port: server.port, host: "127.0.0.1" } }), { type: "done" });
    assert.deepEqual(await node.postStart({ httpGet: { port: server.port, path: "/x" } }), {
      type: "failed",
      message: `HTTP lifecycle hook (/x) ${inPod} failed to find networking container: the pod has no IP`,
    });
  });

  test("nobody there", async () => {
    const server = await serve(() => {});
    const { port } = server;
    await server[Symbol.asyncDispose]();
    await using node = new Node();
    const address = `127.0.0.1:${port}`;
    assert.deepEqual(await node.postStart({ httpGet: { port, path: "/x" } }), {
      type: "failed",
      message: `HTTP lifecycle hook (/x) ${inPod} Get "http://${address}/x": dial tcp ${address}: connect: connection refused`,
    });
  });

  test("a port that the container does not have", async () => {
    await using node = new Node();
    assert.deepEqual(await node.postStart({ httpGet: { port: "none", path: "/x" } }), {
      type: "failed",
      message: `HTTP lifecycle hook (/x) ${inPod} strconv.Atoi: parsing "none": invalid syntax`,
    });
  });

  test("HTTPS to a server of plain HTTP is repeated in plain, without the secret, and told", async () => {
    const seen: string[] = [];
    await using server = await serve((request, response) => {
      const { authorization = "nothing secret", "x-id": own } = request.headers;
      seen.push(`${request.url} ${authorization} ${own}`);
      response.end();
    });
    await using node = new Node();
    const httpHeaders = [
      { name: "authorization", value: "Bearer token" },
      { name: "X-Id", value: "7" },
    ];
    const httpGet = { port: server.port, path: "/x", scheme: "HTTPS", httpHeaders };
    assert.deepEqual(await node.postStart({ httpGet }), { type: "done" });
    assert.deepEqual(seen, ["/x nothing secret 7"]);
    assert.deepEqual(node.events, [
      `Warning LifecycleHTTPFallback pod: request to HTTPS lifecycle hook 127.0.0.1:${server.port} got HTTP response, retry with HTTP succeeded`,
    ]);
  });

  test("when the repetition fails as well, the first failure is the one told", async () => {
    const connections: number[] = [];
    const server = createTcpServer((socket) => {
      connections.push(connections.length);
      socket.on("error", () => {});
      socket.once("data", () => socket.end(connections.length === 1 ? "HTTP/1.1 400 Bad Request\r\n\r\n" : "nonsense"));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await using node = new Node();
    assert.deepEqual(await node.postStart({ httpGet: { port, path: "/x", scheme: "HTTPS" } }), {
      type: "failed",
      message: `HTTP lifecycle hook (/x) ${inPod} Get "https://127.0.0.1:${port}/x": http: server gave HTTP response to HTTPS client`,
    });
    assert.equal(connections.length, 2);
    assert.deepEqual(node.events, ["Warning FailedPostStartHook spec.containers{web}: PostStartHook failed"]);
    server.close();
    await once(server, "close");
  });
});

describe("sleep", () => {
  test("lasts as long as it says", async () => {
    await using node = new Node();
    let result: HookResult | undefined;
    const pending = node.postStart({ sleep: { seconds: 5 } }).then((ended) => {
      result = ended;
    });
    await node.clock.advance(4_999);
    assert.equal(result, undefined);
    await node.clock.advance(1);
    await pending;
    assert.deepEqual(result, { type: "done" });
  });

  test("of no time at all", async () => {
    await using node = new Node();
    const pending = node.postStart({ sleep: { seconds: 0 } });
    await node.clock.advance(0);
    assert.deepEqual(await pending, { type: "done" });
  });

  for (const when of ["before", "during"] as const) {
    test(`fails when the container ends ${when} it`, async () => {
      await using node = new Node();
      const ended = new AbortController();
      if (when === "before") ended.abort();
      const container: Container = { name: "web", lifecycle: { postStart: { sleep: { seconds: 5 } } } };
      const pending = node.hooks.postStart(
        { pod: podOf(container), container, id, containerEnded: ended.signal },
        never,
      );
      if (when === "during") await node.clock.advance(1_000);
      ended.abort();
      assert.deepEqual(await pending, {
        type: "failed",
        message: `Sleep lifecycle hook (5) ${inPod} container terminated before sleep hook finished`,
      });
    });
  }

  test("an abort rejects", async () => {
    await using node = new Node();
    const stop = new AbortController();
    const pending = node.postStart({ sleep: { seconds: 5 } }, stop.signal);
    stop.abort(new Error("enough"));
    await assert.rejects(pending, /^Error: enough$/);
    assert.deepEqual(node.events, []);
  });
});

for (const [name, handler, described] of [
  ["tcpSocket by number", { tcpSocket: { port: 80 } }, "&TCPSocketAction{Port:{0 80 },Host:,}"],
  ["tcpSocket by name", { tcpSocket: { port: "db", host: "h" } }, "&TCPSocketAction{Port:{1 0 db},Host:h,}"],
  ["no action", {}, "nil"],
] as const) {
  test(`${name} cannot be a hook`, async () => {
    await using node = new Node();
    assert.deepEqual(await node.postStart(handler), {
      type: "failed",
      message: `Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:${described},Sleep:nil,}`,
    });
  });
}

describe("preStop", () => {
  test("is waited for", async () => {
    await using node = new Node();
    let ended = false;
    const pending = node.preStop({ sleep: { seconds: 5 } }).then(() => {
      ended = true;
    });
    await node.clock.advance(4_999);
    assert.equal(ended, false);
    await node.clock.advance(1);
    await pending;
    assert.deepEqual(node.events, []);
  });

  test("a failure is an event without details, and stopping goes on", async () => {
    await using node = new Node(async () => exited(1, "", "secret"));
    await node.preStop({ exec: { command: ["false"] } });
    assert.deepEqual(node.events, ["Warning FailedPreStopHook spec.containers{web}: PreStopHook failed"]);
  });

  test("is left to itself when the grace is over, and still reports its failure", async () => {
    let finish: (result: ExecResult) => void = () => {};
    let cancelled = false;
    await using node = new Node((_id, _command, _timeout, signal) => {
      signal.addEventListener("abort", () => {
        cancelled = true;
      });
      return new Promise((resolve) => {
        finish = resolve;
      });
    });
    const grace = new AbortController();
    const pending = node.preStop({ exec: { command: ["drain"] } }, grace.signal);
    grace.abort(new Error("the grace is over"));
    await assert.rejects(pending, /the grace is over/);
    assert.equal(cancelled, false);
    finish(exited(1));
    await settle();
    assert.deepEqual(node.events, ["Warning FailedPreStopHook spec.containers{web}: PreStopHook failed"]);
  });

  test("does not outlive its grace for ever where nobody answers", async () => {
    let isAsked = (): void => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    let hasGone = false;
    await using server = await serve((request) => {
      request.socket.on("close", () => {
        hasGone = true;
      });
      isAsked();
    });
    await using node = new Node();
    const grace = new AbortController();
    const pending = node.preStop({ httpGet: { host: "127.0.0.1", port: server.port } }, grace.signal);
    await asked;
    grace.abort(new Error("the grace is over"));
    await assert.rejects(pending, /the grace is over/);
    await node.clock.advance(119_000);
    assert.equal(hasGone, false);
    await node.clock.advance(1_000);
    for (let turns = 0; turns < 10_000 && !hasGone; turns++) await new Promise(setImmediate);
    assert.equal(hasGone, true);
    assert.deepEqual(node.events, []);
  });

  test("ends with the agent, silently", async () => {
    await using node = new Node();
    const pending = node.preStop({ sleep: { seconds: 60 } });
    const rejected = assert.rejects(pending, { name: "AbortError" });
    await node.scope.stop();
    await rejected;
    assert.deepEqual(node.events, []);
    await assert.rejects(node.preStop({ sleep: { seconds: 60 } }), { name: "AbortError" });
  });
});

test("the ledger tells of hooks, how long they took and why they failed", async () => {
  await using node = new Node(async () => exited(1, "", "no"));
  const pending = node.preStop({ sleep: { seconds: 2 } });
  await node.clock.advance(2_000);
  await pending;
  await node.postStart({ exec: { command: ["x"] } });
  const entries = node.ledger.read("u1" as PodUid)?.entries ?? [];
  assert.deepEqual(
    entries.map(({ step, subject, outcome, startedAt, endedAt = 0 }) => [step, subject, outcome, endedAt - startedAt]),
    [
      ["hook", "web preStop", "ok", 2_000],
      ["hook", "web postStart", "failed", 0],
    ],
  );
  assert.match(entries[1]?.message ?? "", /^Exec lifecycle hook \(\[x\]\) /);
});

test("a failing command is told by the beginning of what it said, however much that was", async () => {
  const noise = Buffer.alloc(4_000_000, 0);
  await using node = new Node(async () => ({ type: "exited", exitCode: 1, stdout: noise, stderr: noise }));
  const result = await node.postStart({ exec: { command: ["sh", "x".repeat(100_000)] } });
  assert.equal(result.type, "failed");
  assert.ok(result.type === "failed" && result.message.length <= 64_000, "a few kilobytes");
  assert.ok(JSON.stringify(node.ledger.read("u1" as PodUid)).length < 10_000);
});

test("output is cut as a whole: stderr follows where stdout leaves room", async () => {
  await using node = new Node(async () => exited(1, "o".repeat(10_000), "e".repeat(1_000)));
  const result = await node.postStart({ exec: { command: ["sh"] } });
  const [, output] = /message: "(.*)"$/.exec(result.type === "failed" ? result.message : "") ?? [];
  assert.equal(output, "o".repeat(10_000) + "e".repeat(240));
});

test("a handler of an odd form fails for its pod alone", async () => {
  await using node = new Node();
  for (const odd of [{ exec: { command: "sh" } }, { exec: { command: [1, null] } }, { httpGet: { port: {} } }, null]) {
    const result = await node.hooks.run(odd as unknown as LifecycleHandler, runOf({ name: "web" }), never);
    assert.equal(result.type, "failed", JSON.stringify(odd));
    await node.preStop(odd as unknown as LifecycleHandler);
  }
  assert.equal(node.scope.signal.aborted, false);
});

function runOf(container: Container) {
  return { pod: podOf(container), container, id };
}
