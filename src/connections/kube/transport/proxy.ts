import { request as requestHttp } from "node:http";
import { isIPv6, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { waitFor } from "../../../ground/base/index.ts";
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
  const answer = waitFor<Socket>(signal, (done, fail) => {
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
      if (head.length > 0) tunnel.unshift(head);
      done(socket);
    });
    request.end();
    return () => {};
  });
  return answer.catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
}

function refusal(status: number | undefined): Error {
  return new Error(`the proxy refused to connect us, with status ${status}`);
}
