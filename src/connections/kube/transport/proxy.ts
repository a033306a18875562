import { request as requestHttp } from "node:http";
import { isIPv6, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { hostOf, portOf, secured, tcpConnection } from "./sockets.ts";
import { negotiateSocks } from "./socks.ts";

/** A connection to `host` that a proxy made for us: HTTP CONNECT, over TLS or not, or SOCKS5. */
export async function connectThroughProxy(
  proxy: URL,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  const proxyHost = hostOf(proxy);
  const plain = await tcpConnection(proxyHost, portOf(proxy), signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new Error(`no connection to the proxy ${proxy.host}`, { cause: error });
  });
  const login = { username: decodeURIComponent(proxy.username), password: decodeURIComponent(proxy.password) };
  if (proxy.protocol === "socks5:") return negotiateSocks(plain, login, host, port, signal);
  const tls = { context: createSecureContext(), serverName: "", verify: true, protocols: ["http/1.1"] };
  const socket = proxy.protocol === "https:" ? await secured(plain, proxyHost, tls, signal) : plain;
  return connectTunnel(socket, login, isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`, signal);
}

function connectTunnel(
  socket: Socket,
  { username, password }: { readonly username: string; readonly password: string },
  target: string,
  signal: AbortSignal,
): Promise<Socket> {
  const basic = Buffer.from(`${username}:${password}`).toString("base64");
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const request = requestHttp({
      method: "CONNECT",
      path: target,
      headers: { host: target, ...(username !== "" && { "proxy-authorization": `Basic ${basic}` }) },
      createConnection: () => socket,
    });
    request.on("error", fail);
    request.on("response", (response) => fail(refusal(response.statusCode)));
    request.on("connect", (response, tunnel, head) => {
      if (response.statusCode !== 200) return fail(refusal(response.statusCode));
      signal.removeEventListener("abort", onAbort);
      if (head.length > 0) tunnel.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}

function refusal(status: number | undefined): Error {
  return new Error(`the proxy refused to connect us, with status ${status}`);
}
