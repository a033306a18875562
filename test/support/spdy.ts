import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { request as requestTls } from "node:https";
import { connect, createConnection } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { SpdyConnection, type SpdyStream } from "../../src/ground/spdy/index.ts";

/** Where to upgrade, and how. */
export interface UpgradeTarget {
  readonly port: number;
  readonly path: string;
  readonly secure: boolean;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type UpgradeResult =
  | { readonly type: "upgraded"; readonly socket: Duplex; readonly head: Buffer; readonly response: IncomingMessage }
  | { readonly type: "refused"; readonly status: number; readonly text: string };

/** Asks for another protocol on a new connection. */
export async function upgrade(target: UpgradeTarget, headers: Record<string, string>): Promise<UpgradeResult> {
  const { port, path, secure, method = "POST" } = target;
  const send = secure ? requestTls : request;
  const where = { host: "127.0.0.1", port, rejectUnauthorized: false, allowHalfOpen: true };
  const createConnection = () => (secure ? connectTls(where) : connect(where));
  const sent = send({
    path,
    method,
    createConnection,
    headers: { Connection: "Upgrade", ...headers, ...target.headers },
  });
  return await new Promise((resolve, reject) => {
    sent.once("upgrade", (response, socket, head) => resolve({ type: "upgraded", response, socket, head }));
    sent.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("end", () => resolve({ type: "refused", status: response.statusCode ?? 0, text }));
    });
    sent.once("error", reject);
    sent.end();
  });
}

export async function openSpdy(target: UpgradeTarget, protocol: string): Promise<SpdyConnection> {
  const result = await upgrade(target, { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": protocol });
  if (result.type === "refused") throw new Error(`refused with ${result.status}: ${result.text}`);
  const chosen = String(result.response.headers["x-stream-protocol-version"] ?? "");
  return new SpdyConnection(result.socket, result.head, chosen);
}

/** From now on only counts what comes, until the other side ends; for figures in which reading must cost little. */
export async function countRest({ socket }: SpdyConnection): Promise<number> {
  let bytes = 0;
  socket.removeAllListeners("data").on("data", (chunk: Buffer) => (bytes += chunk.length));
  socket.resume();
  await new Promise((resolve) => socket.once("end", resolve).once("close", resolve));
  return bytes;
}

export interface RemoteCommand {
  readonly error: SpdyStream;
  readonly stdin: SpdyStream | undefined;
  readonly stdout: SpdyStream;
  readonly stderr: SpdyStream | undefined;
  readonly resize: SpdyStream | undefined;
  readonly connection: SpdyConnection;
  /** Waits for the status that comes at the end. */
  exitCode(): Promise<number>;
}

export interface CommandOptions {
  readonly stdin?: boolean;
  readonly tty?: boolean;
}

/** Opens the streams of exec or attach in the order of kubectl. */
export async function remoteCommand(target: UpgradeTarget, options: CommandOptions = {}): Promise<RemoteCommand> {
  const { stdin: wantsStdin = false, tty = false } = options;
  const connection = await openSpdy(target, "v4.channel.k8s.io");
  const open = (streamtype: string): Promise<SpdyStream> => connection.stream({ streamtype });
  const error = await open("error");
  const stdin = wantsStdin ? await open("stdin") : undefined;
  const stdout = await open("stdout");
  const stderr = tty ? undefined : await open("stderr");
  const resize = tty ? await open("resize") : undefined;
  const exitCode = (): Promise<number> => error.ended.then(() => exitCodeOf(error.text));
  return { error, stdin, stdout, stderr, resize, connection, exitCode };
}

function exitCodeOf(text: string): number {
  const status = JSON.parse(text) as { status: string; details?: { causes?: { reason: string; message: string }[] } };
  if (status.status === "Success") return 0;
  const cause = status.details?.causes?.find(({ reason }) => reason === "ExitCode");
  if (cause === undefined) throw new Error(`the command failed: ${text}`);
  return Number(cause.message);
}

/** A plain TCP connection that sends its bytes as they are, for requests that no client would make. */
export async function rawRequest(port: number, text: string): Promise<string> {
  const socket = createConnection({ host: "127.0.0.1", port });
  socket.write(text);
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
  socket.on("error", () => {});
  await once(socket, "close");
  return answer;
}
