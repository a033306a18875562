import { request as httpRequest } from "node:http";
import { type Agent, request as httpsRequest, type RequestOptions } from "node:https";
import { connect as connectTcp, isIP } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { ClusterAccess } from "../../../connections/kube/index.ts";
import { messageOf, waitFor, withDeadline } from "../../../ground/base/index.ts";
import type { ExaminedWorld } from "../world.ts";

/** One step on the way to the API server. */
export type ApiStep = { readonly ok: true; readonly note: string } | { readonly ok: false; readonly problem: string };

/** Where the API server is, how to know it, and who we are. */
export interface ServerAccess {
  readonly access: ClusterAccess;
  /** Of its host. */
  readonly address: string;
  readonly host: string;
  readonly port: number;
  readonly credentials: ServerCredentials;
}

export interface ServerCredentials {
  readonly tls: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly rejectUnauthorized: boolean;
  };
  readonly headers: Readonly<Record<string, string>>;
}

export async function credentialsOf(
  { files }: ExaminedWorld,
  { trust, user }: ClusterAccess,
): Promise<ServerCredentials> {
  type Source = { readonly type: "data"; readonly data: Buffer } | { readonly type: "file"; readonly path: string };
  const read = async (source: Source): Promise<string> =>
    source.type === "data" ? source.data.toString() : await files.text(source.path, 1024 * 1024);
  const token = user.tokenFile === "" ? user.token : (await files.text(user.tokenFile)).trim();
  const basic = user.basic && Buffer.from(`${user.basic.username}:${user.basic.password}`).toString("base64");
  return {
    tls: {
      rejectUnauthorized: trust.type !== "anyone",
      ...(trust.type === "authority" && { ca: await read(trust.certificates) }),
      ...(user.certificate && {
        cert: await read(user.certificate.certificate),
        key: await read(user.certificate.key),
      }),
    },
    headers:
      token !== ""
        ? { Authorization: `Bearer ${token}` }
        : basic === undefined
          ? {}
          : { Authorization: `Basic ${basic}` },
  };
}

/** Addresses are no names: without one the certificate is held against the address. */
function serverName({ tlsServerName }: ClusterAccess, host: string): { readonly servername?: string } {
  const name = tlsServerName || host;
  return isIP(name) === 0 ? { servername: name } : {};
}

/** Packets that a firewall swallows are never answered: that is a finding of its own, not a doctor that waits. */
const stepMs = 800;

async function bounded(
  { clock }: ExaminedWorld,
  signal: AbortSignal,
  attempt: (signal: AbortSignal) => Promise<ApiStep>,
): Promise<ApiStep> {
  const late = new Error(`no answer within ${stepMs / 1000} s`);
  try {
    return await withDeadline(clock, stepMs, () => late, signal, attempt);
  } catch (error) {
    if (error === late) return { ok: false, problem: late.message };
    throw error;
  }
}

export async function tryTcp(
  world: ExaminedWorld,
  { address, port }: { readonly address: string; readonly port: number },
  signal: AbortSignal,
): Promise<ApiStep> {
  return await bounded(world, signal, (soon) =>
    waitFor<ApiStep>(soon, (done) => {
      const socket = connectTcp({ host: address, port });
      socket.on("connect", () => done({ ok: true, note: `${address}:${port} answers` }));
      socket.on("error", (error) => done({ ok: false, problem: messageOf(error) }));
      return () => socket.destroy();
    }),
  );
}

export async function tryTls(
  world: ExaminedWorld,
  { access, address, host, port, credentials }: ServerAccess,
  signal: AbortSignal,
): Promise<ApiStep> {
  const options: ConnectionOptions = { host: address, port, ...serverName(access, host), ...credentials.tls };
  return await bounded(world, signal, (soon) =>
    waitFor<ApiStep>(soon, (done, fail) => {
      try {
        const socket = connectTls(options);
        socket.on("secureConnect", () => {
          const { valid_to } = socket.getPeerCertificate();
          done({ ok: true, note: `its certificate is valid until ${new Date(valid_to).toISOString().slice(0, 10)}` });
        });
        socket.on("error", (error) => done({ ok: false, problem: messageOf(error) }));
        return () => socket.destroy();
      } catch (error) {
        fail(error);
        return () => {};
      }
    }),
  );
}

export interface ServerReply {
  readonly status: number;
  readonly date: string | undefined;
  readonly body: unknown;
}

interface ServerQuestion {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
  readonly contentType?: string;
}

const longestReply = 2 * 1024 * 1024;

/** One request and its answer. */
export async function send(
  { access, address, host, port, credentials }: ServerAccess,
  agent: Agent,
  { method, path, body, contentType = "application/json" }: ServerQuestion,
  signal: AbortSignal,
): Promise<ServerReply> {
  const prefix = access.server.pathname.replace(/\/$/, "");
  const content = body === undefined ? undefined : JSON.stringify(body);
  const isTls = access.server.protocol === "https:";
  const options: RequestOptions = {
    host: address,
    port,
    method,
    path: `${prefix}${path}`,
    ...serverName(access, host),
    headers: {
      Host: access.server.host,
      Accept: "application/json",
      "Content-Type": contentType,
      ...credentials.headers,
    },
    ...credentials.tls,
  };
  return await waitFor<ServerReply>(signal, (done, fail) => {
    let hasAnswer = false;
    const sent = isTls ? httpsRequest({ ...options, agent }) : httpRequest(options);
    sent.on("error", fail);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("error", fail);
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > longestReply) fail(new Error(`${path}: the answer is longer than ${longestReply} bytes`));
        else chunks.push(chunk);
      });
      response.on("end", () => {
        hasAnswer = true;
        done({ status: response.statusCode ?? 0, date: response.headers.date, body: parsed(Buffer.concat(chunks)) });
      });
    });
    sent.end(content);
    return () => {
      // One that was answered in full leaves its connection to the next.
      if (!hasAnswer) sent.destroy();
    };
  });
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
