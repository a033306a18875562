import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, cutText, onAbort, waitFor, withDeadline } from "../../../ground/base/index.ts";
import { EngineError, EngineTimeout, EngineUnavailable } from "./errors.ts";
import { fieldsOf, textIn } from "./fields.ts";

/** What is asked of Docker, in the words of dockershim's metrics. */
export type EngineOperation =
  | ("version" | "info" | "list_containers" | "inspect_container" | "inspect_container_withsize")
  | ("create_container" | "start_container" | "stop_container" | "remove_container" | "update_container")
  | ("inspect_image" | "list_images" | "pull_image" | "remove_image" | "resize_container" | "attach")
  | ("create_exec" | "start_exec" | "inspect_exec" | "resize_exec");

export interface EngineRequest {
  /** Undefined: what lasts for as long as somebody listens, or nobody counts. */
  readonly operation?: EngineOperation;
  readonly method: "GET" | "POST" | "DELETE" | "HEAD";
  /** With its leading slash, as Docker is to see it; names in it are already encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  /** Instead of `body`: bytes, and what they are. */
  readonly bytes?: { readonly type: string; readonly content: Uint8Array };
  readonly headers?: Readonly<Record<string, string>>;
  /** How long Docker may take altogether; undefined: the client's usual time, "any": as long as it likes. */
  readonly withinMs?: number | "any";
  /** How long the answer may be. */
  readonly maxBytes?: number;
}

export interface EngineAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export interface EngineHttpSettings {
  readonly socketPath: string;
  readonly requestTimeoutMs: number;
}

/** A list of a thousand containers takes about 3 MiB. */
const usualMaxBytes = 32 * 1024 * 1024;
const longestRefusal = 64 * 1024;
const longestMessage = 8 * 1024;
const headersWithinMs = 30_000;
const idleConnections = 8;
/** More than a node has containers: those that Docker keeps waiting must not keep the others from being asked about. */
const connectionsAtOnce = 1024;
/** Calls about all that Docker has do not wait for any container. They are few, and have connections of their own. */
const connectionsAboutAll = 32;
const aboutAll: ReadonlySet<EngineOperation> = new Set([
  ...(["version", "info", "list_containers", "list_images"] as const),
]);

/** HTTP/1.1 over Docker's socket, with a bound in bytes and time for every answer. */
export class EngineHttp {
  readonly #settings: EngineHttpSettings;
  readonly #clock: Clock;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: idleConnections, maxSockets: connectionsAtOnce });
  readonly #agentAboutAll = new Agent({
    keepAlive: true,
    maxFreeSockets: idleConnections,
    maxSockets: connectionsAboutAll,
  });

  constructor(settings: EngineHttpSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  close(): void {
    this.#agent.destroy();
    this.#agentAboutAll.destroy();
  }

  /** The whole answer. Throws EngineError for a status of 400 and above. */
  async call(request: EngineRequest, signal: AbortSignal): Promise<EngineAnswer> {
    return await this.#within(request, signal, async (bounded) => {
      const { operation } = request;
      const agent = operation !== undefined && aboutAll.has(operation) ? this.#agentAboutAll : this.#agent;
      const response = await this.#answer(this.#send(request, agent), bounded);
      if (refused(response)) throw await refusalOf(response, bounded);
      const body = await readAll(response, request.maxBytes ?? usualMaxBytes, "fail", bounded);
      return { status: response.statusCode ?? 0, headers: response.headers, body };
    });
  }

  /** An answer that comes bit by bit, on a connection of its own; only its beginning is bounded in time. */
  async stream(request: EngineRequest, signal: AbortSignal): Promise<IncomingMessage> {
    signal.throwIfAborted();
    const sent = this.#send(request, undefined);
    const response = await this.#begun(request, sent, signal);
    if (refused(response)) throw await this.#refusal(response, signal);
    return response;
  }

  /** A connection that carries bytes both ways; what came with the answer is put back into it. */
  async hijack(request: EngineRequest, signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted();
    const headers = { ...request.headers, Connection: "Upgrade", Upgrade: "tcp" };
    const sent = this.#send({ ...request, headers }, undefined);
    const upgraded = await this.#within({ ...request, withinMs: headersWithinMs }, signal, (bounded) =>
      waitFor<{ socket: Duplex } | { response: IncomingMessage }>(bounded, (done, fail) => {
        sent.once("upgrade", (_, socket, head) => {
          if (head.length > 0) socket.unshift(head);
          done({ socket });
        });
        sent.once("response", (response) => done({ response }));
        sent.once("error", (error) => fail(unreachable(error)));
        return () => sent.removeAllListeners("upgrade");
      }).catch((error: unknown) => {
        sent.destroy();
        throw error;
      }),
    );
    if ("socket" in upgraded) return upgraded.socket;
    if (refused(upgraded.response)) throw await this.#refusal(upgraded.response, signal);
    upgraded.response.destroy();
    throw new EngineUnavailable("docker did not turn the connection into a stream");
  }

  #send(request: EngineRequest, agent: Agent | undefined): ClientRequest {
    const { method, path, query = {}, body, bytes, headers = {} } = request;
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) words.set(name, String(value));
    const search = words.size === 0 ? "" : `?${words}`;
    const content = body === undefined ? bytes?.content : Buffer.from(JSON.stringify(body));
    const type = body === undefined ? bytes?.type : "application/json";
    const sent = httpRequest({
      socketPath: this.#settings.socketPath,
      agent: agent ?? false,
      method,
      path: `${path}${search}`,
      headers: {
        Host: "docker",
        ...(type !== undefined && { "Content-Type": type }),
        // Without a body Docker wants to know that there is none.
        "Content-Length": content?.byteLength ?? 0,
        ...headers,
      },
    });
    // Whoever waits hears of it; afterwards nobody does, and that is fine.
    sent.on("error", () => {});
    sent.end(content);
    return sent;
  }

  async #begun(request: EngineRequest, sent: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await this.#within(
      { ...request, withinMs: request.withinMs ?? headersWithinMs },
      signal,
      (bounded) => this.#answer(sent, bounded),
    );
    // From here on the caller reads it for as long as it likes, until the signal aborts.
    const listening = onAbort(signal, () => response.destroy());
    response.once("close", () => listening[Symbol.dispose]());
    return response;
  }

  async #answer(sent: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
    try {
      return await waitFor<IncomingMessage>(signal, (done, fail) => {
        sent.once("response", done);
        sent.once("error", (error) => fail(unreachable(error)));
        return () => sent.off("response", done);
      });
    } catch (error) {
      sent.destroy();
      throw error;
    }
  }

  /** Also where the answer may take any time, a refusal may not. */
  async #refusal(response: IncomingMessage, signal: AbortSignal): Promise<EngineError> {
    return await this.#within({ withinMs: headersWithinMs }, signal, (bounded) => refusalOf(response, bounded));
  }

  async #within<Result>(
    { withinMs = this.#settings.requestTimeoutMs }: Pick<EngineRequest, "withinMs">,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    if (withinMs === "any") return await work(signal);
    const late = (): Error => new EngineTimeout("operation timeout: context deadline exceeded");
    return await withDeadline(this.#clock, withinMs, late, signal, work);
  }
}

function refused(response: IncomingMessage): boolean {
  return (response.statusCode ?? 0) >= 400;
}

/** Docker may quote what it was given, at any length: the status is what counts. */
async function refusalOf(response: IncomingMessage, signal: AbortSignal): Promise<EngineError> {
  const status = response.statusCode ?? 0;
  return new EngineError(status, messageIn(await readAll(response, longestRefusal, "cut", signal), status));
}

/** What Docker says is a JSON object, from very old ones plain text. */
function messageIn(body: Buffer, status: number): string {
  const raw = body.toString("utf8");
  let message = raw.trim();
  try {
    message = textIn(fieldsOf(JSON.parse(raw)), "message") || message;
  } catch {
    // Plain text, then.
  }
  return cutText(message === "" ? `docker answered with status ${status}` : message, longestMessage);
}

/** `beyond`: what an answer that is longer than the limit comes to. */
async function readAll(
  response: IncomingMessage,
  limit: number,
  beyond: "fail" | "cut",
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    return await waitFor<Buffer>(signal, (done, fail) => {
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= limit) return void chunks.push(chunk);
        if (beyond === "fail") return fail(new EngineUnavailable(`docker answered with more than ${limit} bytes`));
        done(Buffer.concat([...chunks, chunk]).subarray(0, limit));
        response.destroy();
      });
      response.once("end", () => done(Buffer.concat(chunks)));
      response.once("aborted", () => fail(new EngineUnavailable("docker broke off its answer")));
      response.once("error", (error) => fail(unreachable(error)));
      return () => response.removeAllListeners("data");
    });
  } catch (error) {
    response.destroy();
    throw error;
  }
}

function unreachable(error: unknown): EngineUnavailable {
  return error instanceof EngineUnavailable ? error : new EngineUnavailable("cannot reach docker", error);
}
