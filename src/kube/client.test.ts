import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ApiStandIn, type Protocol, type SeenRequest, type ServerTls } from "../../test/support/api-stand-in.ts";
import { FakeClock, settle } from "../../test/support/fake-clock.ts";
import { TestAuthority } from "../../test/support/test-certificates.ts";
import { type Clock, type Logger, silentLogger, systemClock } from "../base/index.ts";
import type { Status } from "../model/index.ts";
import { parseKubeconfig } from "./access/index.ts";
import { ApiError, isConflict, isNotFound } from "./api-error.ts";
import { KubeClients, type KubeClientsSettings } from "./clients.ts";
import { resources } from "./resources.ts";
import { ConnectionError } from "./transport/index.ts";

const never = new AbortController().signal;
setMaxListeners(0, never);
const generous: KubeClientsSettings = {
  userAgent: "kubelet/v1.34.11 (linux/amd64) nodelet/test",
  main: { qps: 1_000, burst: 1_000 },
  events: { qps: 1_000, burst: 1_000 },
  heartbeatTimeoutMs: 10_000,
};

let authority: TestAuthority;
let directory: string;
before(async () => {
  authority = new TestAuthority();
  directory = await mkdtemp(join(tmpdir(), "nodelet-client-"));
});
after(async () => {
  authority.remove();
  await rm(directory, { recursive: true });
});

interface ClientOptions {
  readonly user?: object;
  readonly cluster?: object;
  readonly settings?: Partial<KubeClientsSettings>;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly environment?: Record<string, string>;
}

async function clientsFor(url: string, options: ClientOptions = {}): Promise<KubeClients> {
  const ca = Buffer.from(authority.certificate).toString("base64");
  const access = await parseKubeconfig(
    JSON.stringify({
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
      clusters: [
        {
          name: "k",
          cluster: options.cluster ?? {
            server: url,
            ...(url.startsWith("https") && { "certificate-authority-data": ca }),
          },
        },
      ],
      users: [{ name: "u", user: options.user ?? { token: "open-sesame" } }],
    }),
    join(directory, "kubeconfig"),
  );
  const { clock = systemClock, log = silentLogger, environment = {} } = options;
  return new KubeClients(access, { ...generous, ...options.settings }, { clock, log, environment });
}

function start(protocol: Protocol = "h2", tls: Partial<ServerTls> = {}): Promise<ApiStandIn> {
  return ApiStandIn.start({ protocol, tls: { ...authority.server(), ...tls } });
}

const status = (code: number, reason: string, message: string, details?: Status["details"]): Status => ({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  code,
  reason,
  message,
  ...(details && { details }),
});

for (const { protocol, version } of [
  { protocol: "h2", version: "2.0" },
  { protocol: "https/1.1", version: "1.1" },
  { protocol: "http/1.1", version: "1.1" },
] as const) {
  describe(`over ${protocol}`, () => {
    test("every verb says what it means", async () => {
      await using server = await start(protocol);
      using clients = await clientsFor(server.url);
      server.script = (request, reply) => reply.json({ metadata: { name: request.method } });
      const { main } = clients;
      const pod = { namespace: "ns", name: "web" };
      const bodies = [
        await main.get(resources.pods, pod, { resourceVersion: "0" }, never),
        await main.create(resources.pods, { namespace: "ns" }, { metadata: { name: "web" } }, never),
        await main.update(resources.nodes, { name: "n1" }, { metadata: { name: "n1" } }, never),
        await main.patch(
          resources.pods,
          { ...pod, subresource: "status" },
          { type: "strategic", body: { a: 1 } },
          never,
        ),
        await main.patch(resources.pods, pod, { type: "merge", body: {} }, never),
        await main.patch(resources.pods, pod, { type: "json", body: [{ op: "test" }] }, never),
        await main.patch(resources.pods, pod, { type: "apply", body: {}, fieldManager: "me", force: true }, never),
      ];
      await main.delete(resources.pods, pod, { gracePeriodSeconds: 0, preconditions: { uid: "u1" } }, never);
      await main.list(
        resources.leases,
        { namespace: "kube-node-lease" },
        { fieldSelector: "metadata.name=n1", limit: 5 },
        never,
      );
      assert.deepEqual(
        bodies.map(({ metadata }) => metadata?.name),
        ["GET", "POST", "PUT", "PATCH", "PATCH", "PATCH", "PATCH"],
      );
      const lines = server.seen.map(({ method, path, query, headers, body }) =>
        [method, `${path}${query.size > 0 ? `?${query}` : ""}`, headers["content-type"] ?? "", body].join(" ").trim(),
      );
      assert.deepEqual(lines, [
        "GET /api/v1/namespaces/ns/pods/web?resourceVersion=0",
        'POST /api/v1/namespaces/ns/pods application/json {"metadata":{"name":"web"}}',
        'PUT /api/v1/nodes/n1 application/json {"metadata":{"name":"n1"}}',
        'PATCH /api/v1/namespaces/ns/pods/web/status application/strategic-merge-patch+json {"a":1}',
        "PATCH /api/v1/namespaces/ns/pods/web application/merge-patch+json {}",
        'PATCH /api/v1/namespaces/ns/pods/web application/json-patch+json [{"op":"test"}]',
        "PATCH /api/v1/namespaces/ns/pods/web?fieldManager=me&force=true application/apply-patch+yaml {}",
        'DELETE /api/v1/namespaces/ns/pods/web application/json {"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,"preconditions":{"uid":"u1"}}',
        "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?fieldSelector=metadata.name%3Dn1&limit=5",
      ]);
      for (const { headers, version: spoken } of server.seen) {
        assert.equal(spoken, version);
        assert.equal(headers["authorization"], "Bearer open-sesame");
        assert.equal(headers["user-agent"], generous.userAgent);
      }
      assert.equal(server.connections, 1, "one connection serves all of them");
    });

    test("a refusal keeps the server's words", async () => {
      await using server = await start(protocol);
      using clients = await clientsFor(server.url);
      const message = 'pods "web" not found';
      server.script = (_, reply) => reply.json(status(404, "NotFound", message, { name: "web", kind: "pods" }), 404);
      const error = await clients.main.get(resources.pods, { namespace: "a", name: "web" }, {}, never).catch((e) => e);
      assert.ok(error instanceof ApiError && isNotFound(error));
      assert.deepEqual(
        {
          message: error.message,
          reason: error.reason,
          code: error.code,
          name: error.details?.name,
          request: error.request,
        },
        { message, reason: "NotFound", code: 404, name: "web", request: "GET /api/v1/namespaces/a/pods/web" },
      );
    });

    test("a large answer arrives whole, many at once", async () => {
      await using server = await start(protocol);
      using clients = await clientsFor(server.url);
      const items = Array.from({ length: 20_000 }, (_, index) => ({
        metadata: { name: `pod-${index}`, labels: { a: "ü" } },
      }));
      server.script = (_, reply) => reply.json({ items });
      const lists = await Promise.all(
        Array.from({ length: 8 }, () => clients.main.list(resources.pods, {}, {}, never)),
      );
      for (const list of lists) assert.deepEqual(list.items.at(-1), items.at(-1));
    });

    test("an abort ends the request with its reason and frees the server", async () => {
      await using server = await start(protocol);
      using clients = await clientsFor(server.url);
      const closed = openPromise();
      const asked = openPromise();
      server.script = (_, reply) => {
        asked.resolve();
        reply.onClose(closed.resolve);
      };
      const stop = new AbortController();
      const answer = clients.main.get(resources.nodes, { name: "n" }, {}, stop.signal).catch((e) => e);
      await asked.promise;
      const reason = new DOMException("changed my mind", "AbortError");
      stop.abort(reason);
      assert.equal(await answer, reason);
      await closed.promise;
      server.script = (_, reply) => reply.json({ metadata: { name: "n" } });
      await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    });

    test("a read whose connection is cut is asked again on a new one, a write is not", async () => {
      await using server = await start(protocol);
      using clients = await clientsFor(server.url);
      const cutFirst = (): void => {
        let first = true;
        server.script = (_, reply) => {
          if (!first) return reply.json({ metadata: { name: "n" } });
          first = false;
          reply.status(200);
          reply.write('{"metadata":');
          setImmediate(() => reply.cut());
        };
      };
      cutFirst();
      const node = await clients.main.get(resources.nodes, { name: "n" }, {}, never);
      assert.equal(node.metadata?.name, "n");
      cutFirst();
      const error = await clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
      assert.ok(error instanceof ConnectionError, String(error));
      assert.equal(error.sent, "maybe");
    });

    test("an idle connection that the server closed is replaced unseen", async () => {
      await using server = await start(protocol);
      using clients = await clientsFor(server.url);
      await clients.main.create(resources.pods, { namespace: "a" }, {}, never);
      server.cutAll();
      await settle(20);
      await clients.main.create(resources.pods, { namespace: "a" }, {}, never);
      assert.equal(server.connections, 2);
      assert.equal(server.seen.length, 2);
    });
  });
}

test("what 409 means depends on its reason", async () => {
  await using server = await start();
  using clients = await clientsFor(server.url);
  const answerWith = async (reason: string): Promise<unknown> => {
    server.script = (_, reply) => reply.json(status(409, reason, "no"), 409);
    return clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
  };
  assert.equal(isConflict(await answerWith("Conflict")), true);
  assert.equal(isConflict(await answerWith("AlreadyExists")), false);
});

test("an answer that is no Status still says what happened, in few words", async () => {
  await using server = await start();
  using clients = await clientsFor(server.url);
  server.script = (_, reply) => {
    reply.status(502, { "content-type": "text/html" });
    reply.end(`<html>${"bad gateway ".repeat(1_000)}`);
  };
  const error = await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
  assert.ok(error instanceof ApiError);
  assert.equal(error.code, 502);
  assert.match(error.message, /^the API server answered 502 to GET \/api\/v1\/nodes\/n: <html>bad gateway/);
  assert.ok(error.message.length < 300);
});

describe("patience", () => {
  for (const code of [429, 503, 504]) {
    test(`${code} with Retry-After is waited for and tried again`, async () => {
      const clock = new FakeClock();
      await using server = await start();
      using clients = await clientsFor(server.url, { clock });
      let refusals = 2;
      server.script = (_, reply) => {
        if (refusals-- > 0) reply.json(status(code, "x", "later"), code, { "retry-after": "3" });
        else reply.json({ metadata: { name: "n" } });
      };
      const answer = clients.main.update(resources.nodes, { name: "n" }, {}, never);
      await until(() => server.seen.length === 1);
      await settled(clock);
      assert.equal(server.seen.length, 1, "not before its time");
      await advanceUntil(clock, 500, () => server.seen.length === 3);
      await answer;
      assert.ok(clock.monotonic() >= 6_000 && clock.monotonic() <= 8_000, `took ${clock.monotonic()} ms`);
    });
  }

  test("without Retry-After the caller decides", async () => {
    await using server = await start();
    using clients = await clientsFor(server.url);
    server.script = (_, reply) => reply.json(status(500, "InternalError", "boom"), 500);
    const error = await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    assert.equal(error.message, "boom");
    assert.equal(server.seen.length, 1);
  });

  test("a server that never has time is given up after ten more tries", async () => {
    const clock = new FakeClock();
    await using server = await start();
    using clients = await clientsFor(server.url, { clock });
    server.script = (_, reply) => reply.json(status(429, "TooManyRequests", "later"), 429, { "retry-after": "1" });
    const answer = clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    let done = false;
    void answer.then(() => {
      done = true;
    });
    await advanceUntil(clock, 250, () => done);
    assert.equal((await answer).code, 429);
    assert.equal(server.seen.length, 11);
  });

  test("heartbeats give up after their time, in the middle of an answer as well", async () => {
    const clock = new FakeClock();
    await using server = await start();
    using clients = await clientsFor(server.url, { clock, settings: { heartbeatTimeoutMs: 10_000 } });
    for (const script of [() => {}, (_: SeenRequest, reply: { write(text: string): void }) => reply.write("{")]) {
      const asked = server.seen.length;
      server.script = script;
      let error: unknown;
      const begun = clock.monotonic();
      void clients.heartbeat.update(resources.nodes, { name: "n" }, {}, never).catch((e) => {
        error = e;
      });
      await until(() => server.seen.length > asked);
      await advanceUntil(clock, 500, () => error !== undefined);
      assert.ok(error instanceof ConnectionError);
      assert.equal(error.message, "The API server did not answer PUT /api/v1/nodes/n within 10 s");
      assert.equal(clock.monotonic() - begun, 10_000);
    }
  });
});

describe("throttling", () => {
  test("main and events have limits of their own, heartbeats none", async () => {
    const clock = new FakeClock();
    await using server = await start();
    using clients = await clientsFor(server.url, {
      clock,
      settings: { main: { qps: 1, burst: 2 }, events: { qps: 0, burst: 0 } },
    });
    const answered = { main: 0, events: 0, heartbeat: 0 };
    for (const name of ["main", "events", "heartbeat"] as const) {
      for (let count = 0; count < 15; count++) {
        void clients[name].get(resources.nodes, { name }, {}, never).then(() => answered[name]++);
      }
    }
    await until(() => answered.main === 2 && answered.events === 10 && answered.heartbeat === 15);
    await settled(clock);
    assert.deepEqual(answered, { main: 2, events: 10, heartbeat: 15 });
    await clock.advance(1_000);
    await until(() => answered.events === 15 && answered.main === 3);
    await settled(clock);
    assert.deepEqual(answered, { main: 3, events: 15, heartbeat: 15 });
    await advanceUntil(clock, 1_000, () => answered.main === 15);
    assert.equal(clock.monotonic(), 13_000);
  });
});

describe("connections", () => {
  test("heartbeats have one of their own, and resetting it leaves the others alone", async () => {
    await using server = await start();
    using clients = await clientsFor(server.url);
    const ask = async (name: "main" | "events" | "heartbeat"): Promise<number> => {
      await clients[name].get(resources.nodes, { name }, {}, never);
      return server.seen.at(-1)?.connection ?? 0;
    };
    assert.deepEqual([await ask("main"), await ask("events"), await ask("heartbeat")], [1, 1, 2]);
    clients.resetHeartbeat();
    assert.deepEqual([await ask("heartbeat"), await ask("main")], [3, 1]);
  });

  test("a full session is joined by another, which goes when it is not needed", async () => {
    await using server = await start("h2", { maxStreams: 4 });
    using clients = await clientsFor(server.url);
    await clients.main.get(resources.nodes, { name: "first" }, {}, never);
    const held: (() => void)[] = [];
    server.script = ({ path }, reply) => {
      if (path.endsWith("/held")) held.push(() => reply.json({}));
      else reply.json({});
    };
    const waiting = Array.from({ length: 10 }, () => clients.main.get(resources.nodes, { name: "held" }, {}, never));
    await until(() => held.length === 10);
    // A fourth at most: a new session does not know its limit until the server has said it.
    assert.ok([3, 4].includes(server.connections), `${server.connections} connections`);
    for (const release of held) release();
    await Promise.all(waiting);
    while (server.sockets.size > 1) {
      await clients.main.get(resources.nodes, { name: "x" }, {}, never);
      await realTime(2);
    }
  });

  test("a server that says goodbye gets no new requests, and may finish the old ones", async () => {
    await using server = await start();
    const clients = await clientsFor(server.url);
    const held: (() => void)[] = [];
    server.script = ({ path }, reply) => {
      if (path.endsWith("/held")) held.push(() => reply.json({ metadata: { name: "held" } }));
      else reply.json({});
    };
    const first = clients.main.get(resources.nodes, { name: "held" }, {}, never);
    const second = clients.main.update(resources.nodes, { name: "held" }, {}, never).catch((e) => e);
    await until(() => held.length === 2);
    server.sayGoaway();
    await realTime(20);
    await clients.main.create(resources.pods, { namespace: "a" }, {}, never);
    assert.equal(server.seen.at(-1)?.connection, 2);
    held[0]?.();
    assert.equal((await first).metadata?.name, "held");
    clients[Symbol.dispose]();
    assert.ok((await second) instanceof ConnectionError, "closing finds connections that are being given up");
  });

  test("a silent peer is found out by a ping and replaced", async () => {
    const clock = new FakeClock();
    await using server = await start();
    await using proxy = await startPassThrough(server.port);
    using clients = await clientsFor(`https://127.0.0.1:${proxy.port}`, { clock });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    await clock.advance(29_000);
    proxy.stall();
    let error: unknown;
    void clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => {
      error = e;
    });
    await advanceUntil(clock, 1_000, () => error !== undefined);
    assert.ok(error instanceof ConnectionError);
    assert.match(error.message, /did not answer a ping within 15 s/);
    assert.equal(clock.monotonic(), 45_000);
    proxy.flow();
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
  });

  test("pings keep a quiet connection that lives", async () => {
    const clock = new FakeClock();
    await using server = await start();
    using clients = await clientsFor(server.url, { clock });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(30_000);
      await realTime(30);
    }
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    assert.equal(server.connections, 1);
  });

  test("DISABLE_HTTP2 keeps to HTTP/1.1", async () => {
    await using server = await start("h2");
    using clients = await clientsFor(server.url, { environment: { DISABLE_HTTP2: "1" } });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    assert.equal(server.seen[0]?.version, "1.1");
  });

  test("a server that is not there is said so, and found when it comes back", async () => {
    const server = await start();
    const { port, url } = server;
    using clients = await clientsFor(url);
    await server[Symbol.asyncDispose]();
    const error = await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    assert.ok(error instanceof ConnectionError);
    assert.equal(error.message, `Cannot reach the API server ${url}: connect ECONNREFUSED 127.0.0.1:${port}`);
    await using _back = await ApiStandIn.start({ protocol: "h2", tls: authority.server(), port });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
  });

  test("what comes in after closing is refused, what is under way ends", async () => {
    await using server = await start();
    const clients = await clientsFor(server.url);
    server.script = () => {};
    const open = clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    await until(() => server.seen.length === 1);
    clients[Symbol.dispose]();
    assert.ok((await open) instanceof ConnectionError);
    await assert.rejects(clients.main.get(resources.nodes, { name: "n" }, {}, never), /client was closed/);
  });
});

describe("who the server is", () => {
  test("a stranger's certificate is refused", async () => {
    const stranger = new TestAuthority();
    await using server = await ApiStandIn.start({ protocol: "h2", tls: stranger.server() });
    using clients = await clientsFor(server.url);
    await assert.rejects(
      clients.main.get(resources.nodes, { name: "n" }, {}, never),
      /Cannot reach the API server .*certificate/,
    );
    using anyone = await clientsFor(server.url, { cluster: { server: server.url, "insecure-skip-tls-verify": true } });
    await anyone.main.get(resources.nodes, { name: "n" }, {}, never);
    stranger.remove();
  });

  test("tls-server-name is what the certificate must name", async () => {
    await using server = await start("h2", authority.server(["DNS:api.example"]));
    const ca = Buffer.from(authority.certificate).toString("base64");
    const cluster = { server: server.url, "certificate-authority-data": ca };
    using plain = await clientsFor(server.url, { cluster });
    await assert.rejects(plain.main.get(resources.nodes, { name: "n" }, {}, never), /does not match certificate/);
    using named = await clientsFor(server.url, { cluster: { ...cluster, "tls-server-name": "api.example" } });
    await named.main.get(resources.nodes, { name: "n" }, {}, never);
  });
});

describe("who we are", () => {
  test("a client certificate in files is shown, and a new one replaces the connection", async () => {
    const clock = new FakeClock();
    await using server = await start("h2", { clientAuthority: authority.certificate });
    const files = { "client-certificate": join(directory, "c.pem"), "client-key": join(directory, "c.key") };
    const install = async (name: string): Promise<void> => {
      const pair = authority.client(name);
      await writeFile(files["client-certificate"], pair.certificate);
      await writeFile(files["client-key"], pair.key);
    };
    await install("system:node:one");
    using clients = await clientsFor(server.url, { user: files, clock });
    const whoAmI = async (): Promise<unknown> => {
      await clients.main.get(resources.nodes, { name: "n" }, {}, never);
      return server.seen.at(-1)?.clientName;
    };
    assert.equal(await whoAmI(), "system:node:one");
    // A request under way when the certificate changes is let finish.
    const finish = openPromise();
    server.script = async (_, reply) => {
      await finish.promise;
      reply.json({ metadata: { name: "slow" } });
    };
    const slow = clients.main.get(resources.nodes, { name: "slow" }, {}, never);
    await until(() => server.seen.length === 2);
    server.script = (_, reply) => reply.json({});
    await install("system:node:two");
    await clock.advance(10_000);
    assert.equal(await whoAmI(), "system:node:two");
    finish.resolve();
    assert.equal((await slow).metadata?.name, "slow");
    await until(() => server.sockets.size === 1);
  });

  test("while the two files do not match, the old certificate stays in use", async () => {
    const clock = new FakeClock();
    await using server = await start("h2", { clientAuthority: authority.certificate });
    const files = { "client-certificate": join(directory, "d.pem"), "client-key": join(directory, "d.key") };
    const [old, fresh] = [authority.client("old"), authority.client("fresh")];
    await writeFile(files["client-certificate"], old.certificate);
    await writeFile(files["client-key"], old.key);
    using clients = await clientsFor(server.url, { user: files, clock });
    const whoAmI = async (): Promise<unknown> => {
      await clock.advance(10_000);
      await clients.main.get(resources.nodes, { name: "n" }, {}, never);
      return server.seen.at(-1)?.clientName;
    };
    assert.equal(await whoAmI(), "old");
    await writeFile(files["client-certificate"], fresh.certificate);
    assert.deepEqual([await whoAmI(), await whoAmI()], ["old", "old"]);
    await writeFile(files["client-key"], fresh.key);
    assert.equal(await whoAmI(), "fresh");
  });

  test("a token file is read again, at once when the server refuses the token", async () => {
    const clock = new FakeClock();
    await using server = await start();
    const tokenFile = join(directory, "token");
    await writeFile(tokenFile, "first\n");
    using clients = await clientsFor(server.url, { user: { tokenFile, token: "fallback" }, clock });
    let accepted = "first";
    server.script = ({ headers }, reply) => {
      if (headers["authorization"] === `Bearer ${accepted}`) reply.json({});
      else reply.json(status(401, "Unauthorized", "Unauthorized"), 401);
    };
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    accepted = "second";
    await writeFile(tokenFile, "second\n");
    await clients.main.create(resources.pods, { namespace: "a" }, {}, never);
    assert.equal(server.seen.length, 3);
    accepted = "third";
    const error = await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    assert.equal(error.code, 401);
    assert.equal(server.seen.length, 5, "tried once more, not for ever");
  });

  test("nothing that goes wrong says the token", async () => {
    const lines: string[] = [];
    const note = (...words: unknown[]): void => void lines.push(JSON.stringify(words));
    const log: Logger = { info: note, warn: note, error: note, debug: note, named: () => log };
    await using server = await start();
    using clients = await clientsFor(server.url, { user: { token: "s3cr3t-token" }, log });
    const problems: unknown[] = [];
    server.script = (_, reply) => reply.json(status(403, "Forbidden", "no"), 403);
    problems.push(await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e));
    server.script = (_, reply) => reply.cut();
    problems.push(await clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => e));
    server.script = (_, reply) => reply.end("not json");
    problems.push(await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e));
    assert.equal(problems.filter((problem) => problem instanceof Error).length, 3);
    const all = [...lines, ...problems.map((e) => `${e instanceof Error ? e.stack : e} ${JSON.stringify(e)}`)].join(
      "\n",
    );
    assert.ok(!all.includes("s3cr3t"), all);
  });
});

/** A relay between client and server that can stop moving bytes without closing anything. */
async function startPassThrough(target: number) {
  const sockets = new Set<Socket>();
  let stalled = false;
  const { connect } = await import("node:net");
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}).on("close", () => to.destroy());
      from.on("data", (data) => {
        if (!stalled) to.write(data);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    stall: () => {
      stalled = true;
    },
    flow: () => {
      stalled = false;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  const giveUp = AbortSignal.timeout(20_000);
  while (!condition()) {
    giveUp.throwIfAborted();
    await realTime(2);
  }
}

/** Moves virtual time in steps, leaving real time in between for sockets. */
async function advanceUntil(clock: FakeClock, stepMs: number, condition: () => boolean): Promise<void> {
  const giveUp = AbortSignal.timeout(30_000);
  while (!condition()) {
    giveUp.throwIfAborted();
    await clock.advance(stepMs);
    await realTime(5);
  }
}

async function settled(clock: FakeClock): Promise<void> {
  await realTime(20);
  await clock.advance(0);
}

function realTime(ms: number): Promise<void> {
  return systemClock.sleep(ms, never);
}

function openPromise(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
