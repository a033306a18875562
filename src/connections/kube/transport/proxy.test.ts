import assert from "node:assert/strict";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { connectThroughProxy } from "./proxy.ts";

const never = new AbortController().signal;
const sockets = new Set<Socket>();
const servers = new Set<Server | HttpServer>();
let echo: Server;
before(async () => {
  echo = createServer((socket) => void socket.on("error", () => {}).pipe(socket));
  await listen(echo);
});
after(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

function listen(server: Server | HttpServer): Promise<number> {
  servers.add(server);
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));
}

async function echoed(socket: Socket): Promise<string> {
  socket.write("hello");
  const [data] = (await new Promise((resolve) => socket.once("data", (...words) => resolve(words)))) as [Buffer];
  socket.destroy();
  return data.toString();
}

const targetPort = (): number => (echo.address() as AddressInfo).port;

test("HTTP CONNECT, with the proxy's password", async () => {
  const asked: unknown[] = [];
  const proxy = createHttpServer();
  proxy.on("connect", ({ url, headers }, near: Socket) => {
    asked.push(url, headers["proxy-authorization"]);
    const far = connect(targetPort(), "127.0.0.1");
    near.write("HTTP/1.1 200 Connection established\r\n\r\n");
    near.pipe(far).pipe(near);
  });
  const port = await listen(proxy);
  const url = new URL(`http://jane:p%40ss@127.0.0.1:${port}`);
  assert.equal(await echoed(await connectThroughProxy(url, "127.0.0.1", targetPort(), never)), "hello");
  assert.deepEqual(asked, [`127.0.0.1:${targetPort()}`, `Basic ${Buffer.from("jane:p@ss").toString("base64")}`]);
});

test("a proxy that refuses, in whichever way, is said so without its password", async () => {
  for (const head of [
    "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 403 No\r\n\r\n",
  ]) {
    const proxy = createHttpServer();
    proxy.on("connect", (_, near: Socket) => near.end(head));
    const url = new URL(`http://jane:s3cr3t@127.0.0.1:${await listen(proxy)}`);
    const error = await connectThroughProxy(url, "10.0.0.1", 6443, never).catch((e) => e);
    assert.match(error.message, /^the proxy refused to connect us, with status 40[37]$/);
  }
});

test("a proxy that is not there", async () => {
  const gone = createServer();
  const port = await listen(gone);
  await new Promise((resolve) => gone.close(resolve));
  const url = new URL(`http://jane:s3cr3t@127.0.0.1:${port}`);
  const error = await connectThroughProxy(url, "10.0.0.1", 6443, never).catch((e) => e);
  assert.equal(error.message, `no connection to the proxy 127.0.0.1:${port}`);
});

test("an https proxy must show a certificate that we trust", async () => {
  const proxy = createHttpsServer({});
  const url = new URL(`https://127.0.0.1:${await listen(proxy)}`);
  await assert.rejects(connectThroughProxy(url, "10.0.0.1", 6443, never));
});

/** SOCKS5 as a server speaks it, in as many pieces as there are bytes. */
function socksServer(options: { readonly login?: string; readonly reply?: number }): Server {
  return createServer((near) => {
    let bytes = Buffer.alloc(0);
    let step: "hello" | "login" | "request" = "hello";
    const send = (data: readonly number[]): void => {
      for (const byte of data) near.write(Buffer.from([byte]));
    };
    const onData = (data: Buffer): void => {
      bytes = Buffer.concat([bytes, data]);
      if (step === "hello") {
        const wanted = options.login === undefined ? 0 : 2;
        const offers = bytes.subarray(2).includes(wanted);
        bytes = Buffer.alloc(0);
        step = wanted === 2 ? "login" : "request";
        send([5, offers ? wanted : 255]);
      } else if (step === "login") {
        const userLength = bytes[1] ?? 0;
        const user = bytes.subarray(2, 2 + userLength).toString();
        const secret = bytes.subarray(3 + userLength).toString();
        bytes = Buffer.alloc(0);
        step = "request";
        send([1, `${user}:${secret}` === options.login ? 0 : 1]);
      } else {
        const length = bytes[4] ?? 0;
        const port = bytes.readUInt16BE(5 + length);
        near.off("data", onData);
        send([5, options.reply ?? 0, 0, 1, 127, 0, 0, 1, 0, 80]);
        const far = connect(port, bytes.subarray(5, 5 + length).toString());
        far.on("error", () => near.destroy());
        near.pipe(far).pipe(near);
      }
    };
    near.on("data", onData);
  });
}

for (const { name, userInfo, options, expected } of [
  { name: "without a login", userInfo: "", options: {}, expected: "hello" },
  { name: "with a login", userInfo: "jane:pw@", options: { login: "jane:pw" }, expected: "hello" },
  {
    name: "with a wrong login",
    userInfo: "jane:no@",
    options: { login: "jane:pw" },
    expected: "the proxy did not accept the user name and password",
  },
  {
    name: "without the login it wants",
    userInfo: "",
    options: { login: "jane:pw" },
    expected: "the proxy wants another way to log in than user name and password",
  },
  {
    name: "that refuses",
    userInfo: "",
    options: { reply: 2 },
    expected: "the proxy refused to connect us: not allowed",
  },
]) {
  test(`SOCKS5 ${name}`, async () => {
    const proxy = socksServer(options);
    const url = new URL(`socks5://${userInfo}127.0.0.1:${await listen(proxy)}`);
    const outcome = await connectThroughProxy(url, "127.0.0.1", targetPort(), never).then(echoed, (e) => e.message);
    assert.equal(outcome, expected);
  });
}

test("an abort ends the wait for a proxy that says nothing", async () => {
  const proxy = createServer(() => {});
  const port = await listen(proxy);
  for (const scheme of ["http", "socks5"]) {
    const stop = new AbortController();
    const connecting = connectThroughProxy(new URL(`${scheme}://127.0.0.1:${port}`), "10.0.0.1", 1, stop.signal);
    setTimeout(() => stop.abort(new Error("enough")), 20);
    await assert.rejects(connecting, /enough/);
  }
});
