import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { after, before, describe, test } from "node:test";
import type { SeenRequest } from "../../../test/support/api-stand-in.ts";
import { advanceUntil, ClientLab, generous, never, openPromise, settled } from "../../../test/support/client-lab.ts";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { until } from "../../../test/support/until.ts";
import type { Status } from "../../ground/model/index.ts";
import { ApiError, isConflict, isNotFound } from "./api-error.ts";
import { resources } from "./resources.ts";
import { ConnectionError } from "./transport/index.ts";

let lab: ClientLab;
before(() => {
  lab = new ClientLab();
});
after(() => lab.remove());

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
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
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
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
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
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
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
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
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

    test("nothing is left on the caller's signal, whatever became of its requests", async () => {
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
      server.script = ({ path, query }, reply) => {
        if (query.get("watch") === "true") reply.write("{}\n");
        else if (path.endsWith("/cut")) reply.cut();
        else if (path.endsWith("/refused")) reply.json({}, 404);
        else reply.json({});
      };
      const { signal } = new AbortController();
      for (const name of ["fine", "cut", "refused", "fine"]) {
        await clients.main.update(resources.nodes, { name }, {}, signal).catch(() => {});
        const { body } = await clients.main.openWatch(resources.nodes, {}, { timeoutSeconds: 60 }, signal);
        body.destroy();
        await once(body, "close");
      }
      await settle(20);
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });

    test("a read whose connection is cut is asked again on a new one, a write is not", async () => {
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
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
      await using server = await lab.server(protocol);
      using clients = await lab.clients(server.url);
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
  await using server = await lab.server();
  using clients = await lab.clients(server.url);
  const answerWith = async (reason: string): Promise<unknown> => {
    server.script = (_, reply) => reply.json(status(409, reason, "no"), 409);
    return clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
  };
  assert.equal(isConflict(await answerWith("Conflict")), true);
  assert.equal(isConflict(await answerWith("AlreadyExists")), false);
});

test("an answer that is no Status still says what happened, in few words", async () => {
  await using server = await lab.server();
  using clients = await lab.clients(server.url);
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
      await using server = await lab.server();
      using clients = await lab.clients(server.url, { clock });
      let refusals = 2;
      server.script = (_, reply) => {
        if (refusals-- > 0) reply.json(status(code, "x", "later"), code, { "retry-after": "3" });
        else reply.json({ metadata: { name: "n" } });
      };
      const answer = clients.main.update(resources.nodes, { name: "n" }, {}, never);
      await until("server.seen.length === 1", () => server.seen.length === 1);
      await settled(clock);
      assert.equal(server.seen.length, 1, "not before its time");
      await advanceUntil(clock, 500, () => server.seen.length === 3);
      await answer;
      assert.ok(clock.monotonic() >= 6_000 && clock.monotonic() <= 8_000, `took ${clock.monotonic()} ms`);
    });
  }

  test("without Retry-After the caller decides", async () => {
    await using server = await lab.server();
    using clients = await lab.clients(server.url);
    server.script = (_, reply) => reply.json(status(500, "InternalError", "boom"), 500);
    const error = await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    assert.equal(error.message, "boom");
    assert.equal(server.seen.length, 1);
  });

  test("a server that never has time is given up after ten more tries", async () => {
    const clock = new FakeClock();
    await using server = await lab.server();
    using clients = await lab.clients(server.url, { clock });
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
    await using server = await lab.server();
    using clients = await lab.clients(server.url, { clock, settings: { heartbeatTimeoutMs: 10_000 } });
    for (const script of [() => {}, (_: SeenRequest, reply: { write(text: string): void }) => reply.write("{")]) {
      const asked = server.seen.length;
      server.script = script;
      let error: unknown;
      const begun = clock.monotonic();
      void clients.heartbeat.update(resources.nodes, { name: "n" }, {}, never).catch((e) => {
        error = e;
      });
      await until("server.seen.length > asked", () => server.seen.length > asked);
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
    await using server = await lab.server();
    using clients = await lab.clients(server.url, {
      clock,
      settings: { main: { qps: 1, burst: 2 }, events: { qps: 0, burst: 0 } },
    });
    const answered = { main: 0, events: 0, heartbeat: 0 };
    for (const name of ["main", "events", "heartbeat"] as const) {
      for (let count = 0; count < 15; count++) {
        void clients[name].get(resources.nodes, { name }, {}, never).then(() => answered[name]++);
      }
    }
    await until(
      "answered.main === 2 && answered.events === 10 && answered.heartbeat === 15",
      () => answered.main === 2 && answered.events === 10 && answered.heartbeat === 15,
    );
    await settled(clock);
    assert.deepEqual(answered, { main: 2, events: 10, heartbeat: 15 });
    await clock.advance(1_000);
    await until("answered.events === 15 && answered.main === 3", () => answered.events === 15 && answered.main === 3);
    await settled(clock);
    assert.deepEqual(answered, { main: 3, events: 15, heartbeat: 15 });
    await advanceUntil(clock, 1_000, () => answered.main === 15);
    assert.equal(clock.monotonic(), 13_000);
  });
});
