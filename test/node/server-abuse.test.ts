import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import { eventually } from "../support/agent.ts";
import { type Daemon, DaemonHome } from "../support/daemon.ts";
import { freePort } from "../support/free-port.ts";
import { openFiles, rssMb } from "../support/process-figures.ts";
import { RawClient, type RawPlace, rawAnswer } from "../support/raw-client.ts";
import { serveFakeRuntime } from "../support/served-runtime.ts";

const never = new AbortController().signal;

// Anybody may do anything here, so that what holds does not hold because of credentials.
describe("abuse of the node's API", { timeout: 200_000 }, () => {
  let home: DaemonHome;
  let agent: Daemon;
  let runtime: AsyncDisposable;
  let secure: RawPlace;
  let plain: RawPlace;
  let quiet: { readonly files: number; readonly rssMb: number };

  before(async () => {
    home = await DaemonHome.create();
    runtime = await serveFakeRuntime(home.runtimeSocket);
    const readOnlyPort = await freePort();
    home.configure({ readOnlyPort });
    agent = home.start();
    secure = { port: home.apiPort, secure: true };
    plain = { port: readOnlyPort, secure: false };
    await agent.isUp();
    await agent.until("it had started", () => agent.stderr.includes('"Started nodelet"'));
    await agent.until("the API listens", async () => (await health()) === 200);
    for (let round = 0; round < 50; round++) await health();
    quiet = { files: openFiles(agent.pid), rssMb: rssMb(agent.pid) };
  });
  after(async () => {
    await home?.[Symbol.asyncDispose]();
    await runtime?.[Symbol.asyncDispose]();
  });

  /** As kube-apiserver would ask while the abuse goes on. */
  async function health(): Promise<number> {
    const options = { host: "127.0.0.1", port: home.apiPort, rejectUnauthorized: false, agent: false };
    try {
      const sent = request({ ...options, path: "/healthz" }).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      response.resume();
      return response.statusCode ?? 0;
    } catch {
      return 0;
    }
  }

  async function isAsBefore(): Promise<void> {
    assert.equal(await health(), 200);
    assert.equal(await agent.healthz(), "ok");
    await eventually(async () => openFiles(agent.pid) <= quiet.files + 3, "connections are closed", 60_000);
    const grown = rssMb(agent.pid) - quiet.rssMb;
    assert.ok(grown < 80, `the agent grew by ${grown.toFixed(1)} MB`);
  }

  const head = (target: string, ...lines: readonly string[]): string =>
    [`GET ${target} HTTP/1.1`, "Host: node", ...lines, "", ""].join("\r\n");

  test("1,000 who say nothing and 40 who never come to the point are cut off; others are answered meanwhile", async () => {
    const silent = await openSilent(1_000);
    const slow = await Promise.all(
      Array.from({ length: 40 }, (_, index) => RawClient.open(index % 2 ? plain : secure)),
    );
    const grown = rssMb(agent.pid) - quiet.rssMb;
    assert.ok(grown < 100, `the agent grew by ${grown.toFixed(1)} MB`);
    let open = slow.length;
    for (const client of slow) void client.closed.then(() => open--);
    for (const client of slow) await client.send("GET /pods HTTP/1.1\r\nHost: node\r\nX-Slow: ");
    while (open > 0) {
      for (const client of slow) await client.send("x");
      assert.equal(await health(), 200);
      await systemClock.sleep(500, never);
    }
    for (const { statuses } of slow) assert.deepEqual(statuses, [408]);
    await eventually(async () => silent.every(({ destroyed }) => destroyed), "the silent are cut", 60_000);
    await isAsBefore();
  });

  /** From many addresses: one alone may not have so many. */
  async function openSilent(count: number): Promise<readonly Socket[]> {
    const sockets: Socket[] = [];
    for (let index = 0; index < count; index++) {
      const port = index % 2 ? plain.port : secure.port;
      const socket = connect({ host: "127.0.0.1", port, localAddress: `127.0.0.${2 + (index % 9)}` });
      socket.on("error", () => {}).resume();
      sockets.push(socket);
      if (index % 100 === 99) assert.equal(await health(), 200);
    }
    await eventually(async () => openFiles(agent.pid) >= quiet.files + count * 0.9, "they are open", 30_000);
    return sockets;
  }

  test("a body that never comes does not hold its connection for ever", async () => {
    using client = await RawClient.open(secure);
    await client.send(head("/pods", "Content-Length: 1000000", "Connection: close"));
    await client.closed;
    assert.deepEqual(client.statuses, [200]);
  });

  for (const [what, text, expected] of [
    ["10,000 bytes of headers are fine", head("/healthz", `X-Long: ${"x".repeat(10_000)}`, "Connection: close"), [200]],
    ["100,000 bytes are not", head("/healthz", `X-Long: ${"x".repeat(100_000)}`), [431]],
    ["nor are 3,000 headers of 40 bytes", head("/healthz", ...Array(3_000).fill(`X-Many: ${"x".repeat(32)}`)), [431]],
    ["a path of 100,000 bytes", head(`/${"x".repeat(100_000)}`), [431]],
    ["no host", "GET /healthz HTTP/1.1\r\n\r\n", [400]],
    ["rubbish", "\x16\x03\x01\x00\xa5 hello\r\n\r\n", [400]],
    ["a method that does not exist", "BREW /healthz HTTP/1.1\r\nHost: node\r\n\r\n", [400]],
    ["a NUL in a header", head("/healthz", "X: a\0b"), [400]],
    ["a header that goes on in the next line after a bare return", head("/healthz", "X: a\rY: b"), [400]],
    ["two lengths", head("/healthz", "Content-Length: 3", "Content-Length: 4"), [400]],
    ["length and chunks at once", head("/healthz", "Content-Length: 3", "Transfer-Encoding: chunked"), [400]],
    ["a negative length", head("/healthz", "Content-Length: -3"), [400]],
    ["a target that is no path", head("*", "Connection: close"), [400]],
    ["a broken escape", head("/pods/%zz", "Connection: close"), [400]],
    ["an upgrade to nothing", head("/pods", "Connection: Upgrade", "Upgrade:"), [200]],
    ["an upgrade to nonsense", head("/exec/a/b/c?output=1", "Connection: Upgrade", "Upgrade: \x01"), [400]],
    ["an upgrade of what cannot be", head("/healthz", "Connection: Upgrade", "Upgrade: h2c"), [200]],
    ["a WebSocket without key", head("/exec/a/b/c?output=1", "Connection: Upgrade", "Upgrade: websocket"), [404]],
  ] as const) {
    test(`${what}: ${expected.join()}`, async () => {
      for (const place of [secure, plain]) {
        // The read-only port refuses exec as such.
        const wanted = place === plain && text.startsWith("GET /exec") && expected[0] === 404 ? [405] : expected;
        using client = await RawClient.open(place);
        await client.send(text);
        await eventually(async () => client.statuses.length > 0, "an answer", 30_000);
        assert.deepEqual(client.statuses, wanted, client.text.slice(0, 300));
      }
    });
  }

  test("no path leads out of the logs", async () => {
    const climbs = ["..", "%2e%2e", "%2E.", "..%2f..", "%252e%252e", "..%5c..", "..\\..", "%c0%ae%c0%ae", "....//"];
    for (const start of ["/logs", "/logs/", "/containerLogs/a/b", "/debug/pprof", ""]) {
      for (const climb of climbs) {
        const path = `${start}/${`${climb}/`.repeat(6)}etc/passwd`.replace("//", "/");
        const client = await rawAnswer(secure, head(path, "Connection: close"));
        assert.ok([301, 400, 404].includes(client.statuses[0] ?? 0), `${path}: ${client.text.slice(0, 200)}`);
        assert.doesNotMatch(client.text, /root:/);
      }
    }
  });

  test("garbage and plain HTTP where TLS is spoken", async () => {
    for (const text of [
      "GET /pods HTTP/1.1\r\nHost: node\r\n\r\n",
      "\0".repeat(4096),
      "\x16\x03\x01\xff\xff\x01\x00",
    ]) {
      using client = await RawClient.open({ port: secure.port, secure: false });
      await client.send(text);
      await client.closed;
      assert.doesNotMatch(client.text, /PodList/);
    }
    await isAsBefore();
  });

  test("a body beyond all measure is refused before it is sent, and not kept", async () => {
    const sending = await Promise.all(
      ["PUT /debug/flags/v", "POST /run/a/b/c?cmd=x", "POST /pods"].map(async (line) => {
        const client = await RawClient.open(secure);
        await client.send(`${line} HTTP/1.1\r\nHost: node\r\nContent-Length: 4000000000\r\n\r\n${"0".repeat(100)}`);
        return client;
      }),
    );
    // Before the rest is sent: a connection that is closed on somebody who still sends may take the answer with it.
    await eventually(async () => sending.every(({ statuses }) => statuses.length === 1), "answers", 30_000);
    const chunk = Buffer.alloc(1_000_000, 0x30);
    for (let round = 0; round < 60; round++) await Promise.all(sending.map((client) => client.send(chunk)));
    assert.deepEqual(
      sending.map(({ statuses }) => statuses[0]),
      [400, 404, 405],
    );
    for (const client of sending) client[Symbol.dispose]();
    await isAsBefore();
  });

  test("many requests in one go are answered in their order", async () => {
    const paths = Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? "/healthz" : `/nowhere/${index}`));
    const text = [...paths.map((path) => head(path)), head("/pods", "Connection: close")].join("");
    const { statuses } = await rawAnswer(secure, text);
    assert.deepEqual(statuses, [...paths.map((path) => (path === "/healthz" ? 200 : 404)), 200]);
    await isAsBefore();
  });
});
