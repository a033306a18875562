import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openDescriptors } from "../../../test/fuzz/leaks.ts";
import { ApiStandIn } from "../../../test/support/api-stand-in.ts";
import { advanceUntil, ClientLab, never, openPromise, realTime } from "../../../test/support/client-lab.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { TestAuthority } from "../../../test/support/test-certificates.ts";
import { until } from "../../../test/support/until.ts";
import type { Logger } from "../../ground/base/index.ts";
import { resources } from "./resources.ts";
import { ConnectionError } from "./transport/index.ts";

let lab: ClientLab;
let directory: string;
before(async () => {
  lab = new ClientLab();
  directory = await mkdtemp(join(tmpdir(), "nodelet-client-"));
});
after(async () => {
  lab.remove();
  await rm(directory, { recursive: true });
});

const refusal = (code: number, reason: string) => ({ kind: "Status", code, reason, message: reason });

describe("connections", () => {
  test("heartbeats have one of their own, and resetting it leaves the others alone", async () => {
    await using server = await lab.server();
    using clients = await lab.clients(server.url);
    const ask = async (name: "main" | "events" | "heartbeat"): Promise<number> => {
      await clients[name].get(resources.nodes, { name }, {}, never);
      return server.seen.at(-1)?.connection ?? 0;
    };
    assert.deepEqual([await ask("main"), await ask("events"), await ask("heartbeat")], [1, 1, 2]);
    clients.resetHeartbeat();
    assert.deepEqual([await ask("heartbeat"), await ask("main")], [3, 1]);
  });

  for (const protocol of ["h2", "https/1.1", "http/1.1"] as const) {
    test(`the path of the server's address comes before every request's (${protocol})`, async () => {
      await using server = await lab.server(protocol);
      for (const path of ["/k8s/clusters/c-abc", "/k8s/clusters/c-abc/", "", "/"]) {
        using clients = await lab.clients(`${server.url}${path}`);
        const before = server.seen.length;
        server.script = (_, reply) => reply.json({ metadata: { resourceVersion: "1" }, items: [] });
        await clients.main.get(resources.nodes, { name: "n" }, {}, never);
        await clients.heartbeat.getText("/healthz", never);
        await clients.events.create(resources.pods, { namespace: "a" }, {}, never);
        const watch = await clients.main.openWatch(resources.pods, {}, { timeoutSeconds: 5 }, never);
        watch.body.destroy();
        const prefix = path.replace(/\/$/, "");
        const wanted = ["/api/v1/nodes/n", "/healthz", "/api/v1/namespaces/a/pods", "/api/v1/pods"];
        assert.deepEqual(
          server.seen.slice(before).map((request) => request.path),
          wanted.map((each) => prefix + each),
        );
      }
    });
  }

  test("a refusal without end is cut short, and is still a refusal", async () => {
    await using server = await lab.server();
    using clients = await lab.clients(server.url);
    let closed = false;
    server.script = (_, reply) => {
      reply.status(403);
      reply.onClose(() => {
        closed = true;
      });
      const more = (): void => {
        if (closed) return;
        reply.write("x".repeat(100_000));
        setTimeout(more, 1);
      };
      more();
    };
    await assert.rejects(clients.main.get(resources.nodes, { name: "n" }, {}, never), { code: 403 });
    await until("closed", () => closed);
  });

  test("a full session is joined by another, which goes when it is not needed", async () => {
    await using server = await lab.server("h2", { maxStreams: 4 });
    using clients = await lab.clients(server.url);
    await clients.main.get(resources.nodes, { name: "first" }, {}, never);
    const held: (() => void)[] = [];
    server.script = ({ path }, reply) => {
      if (path.endsWith("/held")) held.push(() => reply.json({}));
      else reply.json({});
    };
    const waiting = Array.from({ length: 10 }, () => clients.main.get(resources.nodes, { name: "held" }, {}, never));
    await until("held.length === 10", () => held.length === 10);
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
    await using server = await lab.server();
    const clients = await lab.clients(server.url);
    const held: (() => void)[] = [];
    server.script = ({ path }, reply) => {
      if (path.endsWith("/held")) held.push(() => reply.json({ metadata: { name: "held" } }));
      else reply.json({});
    };
    const first = clients.main.get(resources.nodes, { name: "held" }, {}, never);
    const second = clients.main.update(resources.nodes, { name: "held" }, {}, never).catch((e) => e);
    await until("held.length === 2", () => held.length === 2);
    server.sayGoaway();
    await realTime(20);
    await clients.main.create(resources.pods, { namespace: "a" }, {}, never);
    assert.equal(server.seen.at(-1)?.connection, 2);
    held[0]?.();
    assert.equal((await first).metadata?.name, "held");
    clients[Symbol.dispose]();
    assert.ok((await second) instanceof ConnectionError, "closing finds connections that are being given up");
  });

  test("closing in the midst of an answer, after goodbyes, does the process no harm", async () => {
    await using server = await lab.server();
    for (let round = 0; round < 60; round++) {
      const clients = await lab.clients(server.url);
      const held: (() => void)[] = [];
      server.script = (_, reply) => void held.push(() => reply.json({ metadata: { name: "held" } }));
      const first = clients.main.get(resources.nodes, { name: "held" }, {}, never);
      const second = clients.main.update(resources.nodes, { name: "held" }, {}, never).catch((e) => e);
      await until("held.length === 2", () => held.length === 2);
      server.sayGoaway();
      await realTime(1);
      held[0]?.();
      await first;
      clients[Symbol.dispose]();
      assert.ok((await second) instanceof ConnectionError);
    }
  });

  test("a silent peer is found out by a ping and replaced", async () => {
    const clock = new FakeClock();
    await using server = await lab.server();
    await using proxy = await startPassThrough(server.port);
    using clients = await lab.clients(`https://127.0.0.1:${proxy.port}`, { clock });
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

  for (const [what, isIdle] of [
    ["an idle connection", true],
    ["one whose last answer comes later", false],
  ] as const) {
    test(`after the server's goodbye ${what} goes, whether or not the server closes it too`, async () => {
      const clock = new FakeClock();
      await using server = await lab.server();
      await using proxy = await startPassThrough(server.port);
      using clients = await lab.clients(`https://127.0.0.1:${proxy.port}`, { clock });
      const held = openPromise();
      server.script = ({ path }, reply) => {
        if (path.endsWith("/held")) void held.promise.then(() => reply.json({}));
        else reply.json({});
      };
      await clients.main.get(resources.nodes, { name: "n" }, {}, never);
      const last = isIdle ? undefined : clients.main.get(resources.nodes, { name: "held" }, {}, never);
      await until("it was asked", () => server.seen.length === (isIdle ? 1 : 2));
      const connected = openDescriptors();
      proxy.swallowEnds();
      server.sayGoaway();
      await realTime(20);
      held.resolve();
      await last;
      await advanceUntil(clock, 1_000, () => openDescriptors() < connected);
      assert.ok(clock.monotonic() <= 10_000);
      await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    });
  }

  test("pings keep a quiet connection that lives", async () => {
    const clock = new FakeClock();
    await using server = await lab.server();
    using clients = await lab.clients(server.url, { clock });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(30_000);
      await realTime(30);
    }
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    assert.equal(server.connections, 1);
  });

  test("DISABLE_HTTP2 keeps to HTTP/1.1", async () => {
    await using server = await lab.server("h2");
    using clients = await lab.clients(server.url, { environment: { DISABLE_HTTP2: "1" } });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    assert.equal(server.seen[0]?.version, "1.1");
  });

  test("a server that is not there is said so, and found when it comes back", async () => {
    const server = await lab.server();
    const { port, url } = server;
    using clients = await lab.clients(url);
    await server[Symbol.asyncDispose]();
    const error = await clients.main.get(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    assert.ok(error instanceof ConnectionError);
    assert.equal(error.message, `Cannot reach the API server ${url}: connect ECONNREFUSED 127.0.0.1:${port}`);
    await using _back = await ApiStandIn.start({ protocol: "h2", tls: lab.authority.server(), port });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
  });

  test("what comes in after closing is refused, what is under way ends", async () => {
    await using server = await lab.server();
    const clients = await lab.clients(server.url);
    server.script = () => {};
    const open = clients.main.update(resources.nodes, { name: "n" }, {}, never).catch((e) => e);
    await until("server.seen.length === 1", () => server.seen.length === 1);
    clients[Symbol.dispose]();
    assert.ok((await open) instanceof ConnectionError);
    await assert.rejects(clients.main.get(resources.nodes, { name: "n" }, {}, never), /client was closed/);
  });
});

describe("who the server is", () => {
  test("a stranger's certificate is refused", async () => {
    const stranger = new TestAuthority();
    await using server = await ApiStandIn.start({ protocol: "h2", tls: stranger.server() });
    using clients = await lab.clients(server.url);
    await assert.rejects(
      clients.main.get(resources.nodes, { name: "n" }, {}, never),
      /Cannot reach the API server .*certificate/,
    );
    using anyone = await lab.clients(server.url, { cluster: { server: server.url, "insecure-skip-tls-verify": true } });
    await anyone.main.get(resources.nodes, { name: "n" }, {}, never);
    stranger.remove();
  });

  test("tls-server-name is what the certificate must name", async () => {
    await using server = await lab.server("h2", lab.authority.server(["DNS:api.example"]));
    const ca = Buffer.from(lab.authority.certificate).toString("base64");
    const cluster = { server: server.url, "certificate-authority-data": ca };
    using plain = await lab.clients(server.url, { cluster });
    await assert.rejects(plain.main.get(resources.nodes, { name: "n" }, {}, never), /does not match certificate/);
    using named = await lab.clients(server.url, { cluster: { ...cluster, "tls-server-name": "api.example" } });
    await named.main.get(resources.nodes, { name: "n" }, {}, never);
  });
});

describe("who we are", () => {
  test("a client certificate in files is shown, and a new one replaces the connection", async () => {
    const clock = new FakeClock();
    await using server = await lab.server("h2", { clientAuthority: lab.authority.certificate });
    const files = { "client-certificate": join(directory, "c.pem"), "client-key": join(directory, "c.key") };
    const install = async (name: string): Promise<void> => {
      const pair = lab.authority.client(name);
      await writeFile(files["client-certificate"], pair.certificate);
      await writeFile(files["client-key"], pair.key);
    };
    await install("system:node:one");
    using clients = await lab.clients(server.url, { user: files, clock });
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
    await until("server.seen.length === 2", () => server.seen.length === 2);
    server.script = (_, reply) => reply.json({});
    await install("system:node:two");
    await clock.advance(10_000);
    assert.equal(await whoAmI(), "system:node:two");
    finish.resolve();
    assert.equal((await slow).metadata?.name, "slow");
    await until("server.sockets.size === 1", () => server.sockets.size === 1);
  });

  test("certificate and key may share a file, and other authorities the one of the server", async () => {
    await using server = await lab.server("h2", { clientAuthority: lab.authority.certificate });
    const other = new TestAuthority();
    const pair = lab.authority.client("system:node:one");
    const both = join(directory, "kubelet-client-current.pem");
    const authorities = join(directory, "ca.crt");
    await writeFile(both, pair.certificate + other.certificate + pair.key);
    await writeFile(authorities, `${other.certificate}\n${lab.authority.certificate}`);
    using clients = await lab.clients(server.url, {
      user: { "client-certificate": both, "client-key": both },
      cluster: { server: server.url, "certificate-authority": authorities },
    });
    await clients.main.get(resources.nodes, { name: "n" }, {}, never);
    assert.equal(server.seen[0]?.clientName, "system:node:one");
    other.remove();
  });

  test("while the two files do not match, the old certificate stays in use", async () => {
    const clock = new FakeClock();
    await using server = await lab.server("h2", { clientAuthority: lab.authority.certificate });
    const files = { "client-certificate": join(directory, "d.pem"), "client-key": join(directory, "d.key") };
    const [old, fresh] = [lab.authority.client("old"), lab.authority.client("fresh")];
    await writeFile(files["client-certificate"], old.certificate);
    await writeFile(files["client-key"], old.key);
    using clients = await lab.clients(server.url, { user: files, clock });
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
    await using server = await lab.server();
    const tokenFile = join(directory, "token");
    await writeFile(tokenFile, "first\n");
    using clients = await lab.clients(server.url, { user: { tokenFile, token: "fallback" }, clock });
    let accepted = "first";
    server.script = ({ headers }, reply) => {
      if (headers["authorization"] === `Bearer ${accepted}`) reply.json({});
      else reply.json(refusal(401, "Unauthorized"), 401);
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
    await using server = await lab.server();
    using clients = await lab.clients(server.url, { user: { token: "s3cr3t-token" }, log });
    const problems: unknown[] = [];
    server.script = (_, reply) => reply.json(refusal(403, "Forbidden"), 403);
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
  let passesEnds = true;
  const { connect } = await import("node:net");
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}).on("close", () => passesEnds && to.destroy());
      from.on("end", () => passesEnds && from.end());
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
    /** From now on nobody hears of the end of the other's direction. */
    swallowEnds: () => {
      passesEnds = false;
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
