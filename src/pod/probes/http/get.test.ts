import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openDescriptors } from "../../../../test/fuzz/leaks.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { until } from "../../../../test/support/until.ts";

import { systemClock } from "../../../ground/base/index.ts";
import { dialErrorText } from "./dial-errors.ts";
import { HttpGetError, httpGet } from "./get.ts";
import { requestHeaders } from "./headers.ts";
import { urlOf } from "./url.ts";

const never = new AbortController().signal;

interface Serving extends AsyncDisposable {
  readonly port: number;
}

async function serve(server: TcpServer | Server): Promise<Serving> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      if ("closeAllConnections" in server) server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

interface GetOptions {
  readonly path?: string;
  readonly scheme?: "http" | "https";
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

function get(port: number, { path = "/", scheme = "http", headers = {}, timeoutMs = 10_000 }: GetOptions = {}) {
  const wanted = Object.entries(headers).map(([name, value]) => ({ name, value }));
  return httpGet(
    {
      url: urlOf(scheme, "127.0.0.1", port, path),
      headers: requestHeaders(wanted, "kube-probe/1.34"),
      timeoutMs,
      bodyLimitBytes: 10 * 1024,
    },
    systemClock,
    never,
  );
}

async function failureOf(request: Promise<unknown>): Promise<HttpGetError> {
  try {
    await request;
  } catch (error) {
    assert.ok(error instanceof HttpGetError, String(error));
    return error;
  }
  throw new Error("the request succeeded");
}

test("sends what it was told to, on a connection that closes", async () => {
  let seen: readonly string[] = [];
  let url = "";
  await using server = await serve(
    createServer((request, response) => {
      seen = request.rawHeaders;
      url = request.url ?? "";
      response.end("well");
    }),
  );
  const { status, body } = await get(server.port, { path: "/healthz?full=1", headers: { "X-Id": "7" } });
  assert.equal(status, 200);
  assert.equal(body.toString(), "well");
  assert.equal(url, "/healthz?full=1");
  assert.deepEqual(seen, [
    ...["Host", `127.0.0.1:${server.port}`],
    ...["User-Agent", "kube-probe/1.34"],
    ...["Accept", "*/*"],
    ...["X-Id", "7"],
    ...["Connection", "close"],
  ]);
});

test("a Host header of the user's is sent instead of the address, and survives a relative redirect only", async () => {
  const hosts: (string | undefined)[] = [];
  await using server = await serve(
    createServer((request, response) => {
      hosts.push(request.headers.host);
      const { port } = server;
      if (request.url === "/") response.writeHead(302, { location: "/relative" }).end();
      else if (request.url === "/relative") response.writeHead(302, { location: `http://127.0.0.1:${port}/x` }).end();
      else response.end();
    }),
  );
  assert.equal((await get(server.port, { headers: { Host: "web.example" } })).status, 200);
  assert.deepEqual(hosts, ["web.example", "web.example", `127.0.0.1:${server.port}`]);
});

test("follows redirects on the same host with all headers, names where it came from", async () => {
  const seen: string[] = [];
  await using server = await serve(
    createServer((request, response) => {
      const { referer = "-", authorization = "-" } = request.headers;
      seen.push(`${request.url} ${referer} ${authorization}`);
      if (request.url === "/") response.writeHead(308, { location: "/second" }).end("moved");
      else response.end("there");
    }),
  );
  const { body } = await get(server.port, { headers: { Authorization: "token" } });
  assert.equal(body.toString(), "there");
  assert.deepEqual(seen, ["/ - token", `/second http://127.0.0.1:${server.port}/ token`]);
});

test("a redirect to another host, or without a place, is itself the answer", async () => {
  await using server = await serve(
    createServer((request, response) => {
      response.writeHead(302, request.url === "/away" ? { location: "http://localhost.invalid/" } : {}).end("gone");
    }),
  );
  for (const path of ["/away", "/nowhere"]) {
    const { status, body } = await get(server.port, { path });
    assert.equal(status, 302);
    assert.equal(body.toString(), "gone");
  }
});

test("gives up after ten requests", async () => {
  let count = 0;
  await using server = await serve(
    createServer((_, response) => {
      count++;
      response.writeHead(301, { location: "/again" }).end();
    }),
  );
  const { message } = await failureOf(get(server.port));
  assert.equal(message, 'Get "/again": stopped after 10 redirects');
  assert.equal(count, 10);
});

test("reads no more of a body than it may, and does not wait for the rest", async () => {
  await using server = await serve(
    createServer((_, response) => {
      response.write("x".repeat(30 * 1024));
    }),
  );
  const { status, body } = await get(server.port);
  assert.equal(status, 200);
  assert.equal(body.length, 10 * 1024);
});

test("statuses other than 101 are read even when the server offers an upgrade", async () => {
  await using server = await serve(
    createServer((_, response) => {
      response.writeHead(200, { upgrade: "h2,h2c", connection: "Upgrade" }).end("hello");
    }),
  );
  assert.equal((await get(server.port)).status, 200);
});

test("a switch of protocols is an answer", async () => {
  const http = createServer();
  http.on("upgrade", (_, socket) => {
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  });
  await using server = await serve(http);
  assert.equal((await get(server.port, { headers: { Connection: "Upgrade", Upgrade: "websocket" } })).status, 101);
});

test("answers with bare line feeds, as some small servers write them, count", async () => {
  await using server = await serve(
    createTcpServer((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"));
    }),
  );
  assert.equal((await get(server.port)).body.toString(), "ok");
});

describe("failures in the words of Go", () => {
  test("connection refused", async () => {
    const server = await serve(createTcpServer());
    await server[Symbol.asyncDispose]();
    const { message, phase } = await failureOf(get(server.port, { path: "/x" }));
    const address = `127.0.0.1:${server.port}`;
    assert.equal(message, `Get "http://${address}/x": dial tcp ${address}: connect: connection refused`);
    assert.equal(phase, "head");
  });

  for (const [code, text] of [
    ["ECONNREFUSED", "dial tcp web:80: connect: connection refused"],
    ["EHOSTUNREACH", "dial tcp web:80: connect: no route to host"],
    ["ENETUNREACH", "dial tcp web:80: connect: network is unreachable"],
    ["ETIMEDOUT", "dial tcp web:80: connect: connection timed out"],
    ["EMFILE", "dial tcp web:80: socket: too many open files"],
    ["ENOTFOUND", "dial tcp: lookup web: no such host"],
    ["EAI_AGAIN", "dial tcp: lookup web: server misbehaving"],
    ["EODD", "dial tcp web:80: connect: as Node says it"],
  ] as const) {
    test(`dialling, ${code}`, () => {
      const error = Object.assign(new Error("as Node says it"), { code });
      assert.equal(dialErrorText("web", 80, error), text);
      assert.equal(dialErrorText("web", 80, new AggregateError([error, new Error("other")])), text);
    });
  }

  test("dialling names the address that a host name led to", () => {
    const error = Object.assign(new Error(), { code: "ECONNREFUSED", address: "fd00::7" });
    assert.equal(dialErrorText("web", 80, error), "dial tcp [fd00::7]:80: connect: connection refused");
  });

  test("closed before an answer", async () => {
    await using server = await serve(createTcpServer((socket) => socket.once("data", () => socket.end())));
    const { message } = await failureOf(get(server.port));
    assert.equal(message, `Get "http://127.0.0.1:${server.port}/": EOF`);
  });

  test("reset", async () => {
    await using server = await serve(
      createTcpServer((socket) => {
        socket.once("data", () => socket.resetAndDestroy());
      }),
    );
    const { message } = await failureOf(get(server.port));
    const local = String.raw`127\.0\.0\.1:\d+`;
    assert.match(
      message,
      new RegExp(`^Get "http://${local}/": read tcp ${local}->${local}: read: connection reset by peer$`),
    );
  });

  test("not HTTP", async () => {
    await using server = await serve(
      createTcpServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => socket.end("SSH-2.0-thing\r\n"));
      }),
    );
    const { message } = await failureOf(get(server.port));
    assert.equal(
      message,
      `Get "http://127.0.0.1:${server.port}/": net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-thing"`,
    );
  });

  test("a header that cannot be sent", async () => {
    await using server = await serve(createServer((_, response) => response.end()));
    const badValue = await failureOf(get(server.port, { headers: { "X-A": "a\nb" } }));
    assert.match(badValue.message, /: net\/http: invalid header field value for "X-A"$/);
    const badName = await failureOf(get(server.port, { headers: { "X A": "a" } }));
    assert.match(badName.message, /: net\/http: invalid header field name "X A"$/);
  });

  test("no answer in time", async () => {
    await using server = await serve(createTcpServer((socket) => socket.resume()));
    const { message, phase } = await failureOf(get(server.port, { timeoutMs: 30 }));
    assert.equal(
      message,
      `Get "http://127.0.0.1:${server.port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
    );
    assert.equal(phase, "head");
  });

  test("a body that does not come in time, and one that breaks off", async () => {
    await using server = await serve(
      createServer((request, response) => {
        response.writeHead(200, { "content-length": 100 });
        response.write("some");
        if (request.url === "/broken") setImmediate(() => response.destroy());
      }),
    );
    const late = await failureOf(get(server.port, { timeoutMs: 200 }));
    assert.equal(late.phase, "body");
    assert.equal(late.message, "context deadline exceeded (Client.Timeout or context cancellation while reading body)");
    const broken = await failureOf(get(server.port, { path: "/broken" }));
    assert.equal(broken.phase, "body");
    assert.equal(broken.message, "unexpected EOF");
  });
});

test("without a timeout it waits for as long as the signal allows, and leaves no timer", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let asked: () => void = () => {};
  const request = new Promise<void>((resolve) => {
    asked = resolve;
  });
  await using server = await serve(createServer(() => asked()));
  const headers = requestHeaders([], "a");
  const url = urlOf("http", "127.0.0.1", server.port, "/");
  const answer = httpGet({ url, headers, timeoutMs: undefined, bodyLimitBytes: 1 }, clock, stop.signal);
  await request;
  await clock.advance(3_600_000);
  stop.abort(new Error("enough"));
  await assert.rejects(answer, /^Error: enough$/);
  assert.equal(clock.pendingTimers, 0);
});

describe("TLS", () => {
  let directory = "";
  const credentials = { key: "", cert: "" };
  const answer: RequestListener = (request, response) => {
    response.end(`${request.httpVersion} ${request.headers["x-id"]}`);
  };

  before(() => {
    directory = mkdtempSync(join(tmpdir(), "probe-tls-"));
    const key = join(directory, "key.pem");
    const cert = join(directory, "cert.pem");
    execFileSync(
      "openssl",
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"].concat([
        ...["-subj", "/CN=elsewhere.example", "-keyout", key, "-out", cert],
      ]),
      { stdio: "ignore" },
    );
    credentials.key = readFileSync(key, "utf8");
    credentials.cert = readFileSync(cert, "utf8");
  });
  after(() => rmSync(directory, { recursive: true }));

  test("any certificate will do", async () => {
    await using server = await serve(createTlsServer(credentials, answer));
    const { body } = await get(server.port, { scheme: "https", headers: { "X-Id": "7" } });
    assert.equal(body.toString(), "1.1 7");
  });

  test("what HTTP/2 will not carry is sent by HTTP/1.1, or fails, and leaves no connection", async () => {
    const seen: (readonly string[])[] = [];
    const secure = createSecureServer({ ...credentials, allowHTTP1: true });
    secure.on("request", (request, response) => {
      seen.push([...new Set(request.rawHeaders.filter((_, index, all) => all[index - 1] === "Authorization"))]);
      response.end(request.httpVersion);
    });
    await using server = await serve(secure as unknown as TcpServer);
    const ask = (headers: readonly (readonly [string, string])[]) =>
      httpGet(
        {
          url: urlOf("https", "127.0.0.1", server.port, "/"),
          headers: requestHeaders(
            headers.map(([name, value]) => ({ name, value })),
            "kube-probe/1.34",
          ),
          timeoutMs: 10_000,
          bodyLimitBytes: 1_024,
        },
        systemClock,
        never,
      );
    const twice = [
      ["Authorization", "one"],
      ["authorization", "two"],
    ] as const;
    const before = openDescriptors();
    for (let round = 0; round < 10; round++) {
      assert.equal((await ask(twice)).body.toString(), "1.1");
      assert.equal((await ask([["X-Id", "7"]])).body.toString(), "2.0");
      await failureOf(ask([["X-Odd", "a\nb"]]));
      await failureOf(ask([["Odd name", "x"]]));
      await failureOf(ask([["X-Long", "\u3042"]]));
    }
    assert.deepEqual(seen[0], ["one", "two"]);
    await until("every connection is closed", () => openDescriptors() <= before);
  });

  test("HTTP/2 where the server offers it, with status, redirect and limit as in HTTP/1.1", async () => {
    const secure = createSecureServer({ ...credentials, allowHTTP1: false });
    secure.on("request", (request, response) => {
      if (request.url === "/") response.writeHead(302, { location: "/big" }).end();
      else if (request.url === "/big") response.end("x".repeat(20_000));
      else response.writeHead(503).end(`${request.httpVersion} ${request.headers[":authority"]}`);
    });
    await using server = await serve(secure as unknown as TcpServer);
    const big = await get(server.port, { scheme: "https" });
    assert.equal(big.status, 200);
    assert.equal(big.body.length, 10 * 1024);
    const { status, body } = await get(server.port, {
      scheme: "https",
      path: "/sick",
      headers: { Host: "web.example", Upgrade: "x" },
    });
    assert.equal(status, 503);
    assert.equal(body.toString(), "2.0 web.example");
  });

  test("answers that are not yet the answer, and pushes, do not go on for ever", async () => {
    const secure = createSecureServer({ ...credentials, allowHTTP1: false });
    let pushed = 0;
    secure.on("stream", (stream, { ":path": path }) => {
      stream.on("error", () => {});
      if (stream.pushAllowed) pushed++;
      const count = path === "/few" ? 3 : 200;
      for (let index = 0; index < count; index++) stream.additionalHeaders({ ":status": 103, link: "x" });
      if (path !== "/many") stream.respond({ ":status": 200 });
      if (path === "/few") stream.end("ok");
    });
    await using server = await serve(secure as unknown as TcpServer);
    assert.equal((await get(server.port, { scheme: "https", path: "/few" })).status, 200);
    for (const path of ["/many", "/many-and-one"]) {
      const { message } = await failureOf(get(server.port, { scheme: "https", path, timeoutMs: 60_000 }));
      assert.match(message, /too many 1xx informational responses$/);
    }
    assert.equal(pushed, 0);
  });

  test("a server that speaks plain HTTP is told from one that fails", async () => {
    await using server = await serve(createServer(answer));
    const error = await failureOf(get(server.port, { scheme: "https" }));
    assert.equal(
      error.message,
      `Get "https://127.0.0.1:${server.port}/": http: server gave HTTP response to HTTPS client`,
    );
    assert.equal(error.isPlainHttpAnswer, true);
  });

  test("a server that closes during the handshake", async () => {
    await using server = await serve(createTcpServer((socket) => socket.once("data", () => socket.end())));
    const error = await failureOf(get(server.port, { scheme: "https" }));
    assert.equal(error.message, `Get "https://127.0.0.1:${server.port}/": EOF`);
    assert.equal(error.isPlainHttpAnswer, false);
  });

  test("a server that wants a certificate of ours", async () => {
    await using server = await serve(
      createTlsServer({ ...credentials, requestCert: true, rejectUnauthorized: true, maxVersion: "TLSv1.2" }, answer),
    );
    const { message } = await failureOf(get(server.port, { scheme: "https" }));
    assert.match(message, /^Get "https:\/\/127\.0\.0\.1:\d+\/": (remote error: tls: |EOF|read tcp )/);
  });

  test("no answer to the handshake in time", async () => {
    await using server = await serve(createTcpServer((socket) => socket.resume()));
    const { message } = await failureOf(get(server.port, { scheme: "https", timeoutMs: 30 }));
    assert.match(message, /: context deadline exceeded \(Client\.Timeout exceeded while awaiting headers\)$/);
  });
});

test("an answer that switches protocols, then resets: the connection is closed and nothing is thrown", async () => {
  const head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: odd\r\nConnection: upgrade\r\n\r\n";
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write(head));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = urlOf("http", "127.0.0.1", port, "/");
  const accepted = once(server, "connection");
  const request = { url, headers: requestHeaders([], "test/1"), timeoutMs: undefined, bodyLimitBytes: 100 };
  const { status } = await httpGet(request, systemClock, new AbortController().signal);
  assert.equal(status, 101);
  const [socket] = (await accepted) as [Socket];
  if (!socket.destroyed && !socket.readableEnded) await once(socket.resume(), "end");
  server.close();
  await once(server, "close");
});
