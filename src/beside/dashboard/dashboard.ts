import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { messageOf, type TaskScope } from "../../ground/base/index.ts";
import { acceptsGzip } from "./door/accepts-gzip.ts";
import { Assets, pageName } from "./door/assets.ts";
import { neverKept, safetyHeaders } from "./door/headers.ts";
import { crossSite, foreignness } from "./door/same-site.ts";
import type { Sessions } from "./door/sessions.ts";
import { Live } from "./live/live.ts";
import { packedInto } from "./live/packed.ts";
import { LogStreams } from "./logs/log-streams.ts";
import type { DashboardPorts } from "./ports.ts";
import { AgentLook } from "./views/agent-view.ts";
import { configView } from "./views/config-view.ts";
import { DoctorLook } from "./views/doctor-look.ts";
import { imagesView } from "./views/images-view.ts";
import { MachineLook } from "./views/machine-view.ts";
import { podOf, podView } from "./views/pod-view.ts";
import { redactedPod, shownValue } from "./views/redacted.ts";
import { LateError, SharedLook } from "./views/shared-look.ts";
import { storageView } from "./views/storage-view.ts";
import { type AgentView, type ImagesView, keyHeader, type MachineView, type StorageView } from "./wire.ts";

/** One request below the dashboard's own path. */
export interface DashboardCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What follows `dashboard/`, decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Who is let in by whom: by the gate of the node's API before it comes here, or by a cookie. */
export type Door =
  | { readonly type: "gate" }
  | {
      readonly type: "local";
      readonly sessions: Sessions;
      readonly bound: string;
      readonly cookieName: string;
      /** Told of the connection of every request that somebody is logged in for. */
      readonly onLetIn: (socket: Socket) => void;
    };

/**
 * Streams say something every 15 s. Who has taken nothing for longer only holds a place, of which there are few; on the
 * node's API nobody else would end that.
 */
const usualSilentMs = 60_000;

/** The dashboard: pages, and what they show. It reads and never changes anything. */
export class Dashboard {
  readonly #ports: DashboardPorts;
  readonly #assets: Assets;
  readonly #live: Live;
  readonly #logs: LogStreams;
  readonly #machine: MachineLook;
  readonly #doctor: DoctorLook;
  readonly #silentMs: number;
  readonly #shared: {
    readonly images: SharedLook<ImagesView>;
    readonly storage: SharedLook<StorageView>;
    readonly machine: SharedLook<MachineView>;
    readonly agent: SharedLook<AgentView>;
  };

  constructor(ports: DashboardPorts, assetsDirectory: string, scope: TaskScope, silentMs = usualSilentMs) {
    this.#ports = ports;
    this.#silentMs = silentMs;
    this.#assets = new Assets(assetsDirectory);
    this.#doctor = new DoctorLook(ports);
    this.#live = new Live(ports, this.#doctor, scope);
    this.#logs = new LogStreams(ports);
    this.#machine = new MachineLook(ports);
    const agent = new AgentLook(ports);
    const sharedFor = (goodForMs: number) => ({ clock: ports.clock, goodForMs, until: scope.signal });
    this.#shared = {
      images: new SharedLook(sharedFor(1_000), (signal) => imagesView(ports, signal)),
      storage: new SharedLook(sharedFor(3_000), (signal) => storageView(ports, signal)),
      machine: new SharedLook(sharedFor(1_500), (signal) => this.#machine.view(signal)),
      agent: new SharedLook(sharedFor(1_500), () => agent.view()),
    };
  }

  async answer(call: DashboardCall, door: Door): Promise<void> {
    const { request, response } = call;
    // Whoever has left while others decided about the request would never be seen to leave.
    if (hasLeft(response)) return;
    try {
      const { headers } = request;
      const foreign =
        door.type === "local" ? foreignness(headers, door.bound, this.#ports.facts.name) : crossSite(headers);
      if (foreign !== undefined) throw new Refusal(403, foreign);
      await this.#route(call, door);
    } catch (error) {
      if (hasLeft(response)) return;
      if (response.headersSent) return void response.destroy();
      const refusal = refusalOf(error);
      // The viewer is told, and asks again every other second: no news for a log.
      if (refusal === undefined) this.#ports.log.debug(1, "The dashboard could not answer", { error });
      const { status, headers } = refusal ?? new Refusal(500, "");
      sendJson(response, { message: messageOf(error), startedAt: this.#ports.facts.startedAt }, status, headers);
    }
  }

  async #route(call: DashboardCall, door: Door): Promise<void> {
    const { request, response, path } = call;
    const isLogin = path === "api/login" && door.type === "local";
    if (isLogin) return await this.#login(call, door);
    if (request.method !== "GET") throw new Refusal(405, "only GET is answered here", { Allow: "GET" });
    if (!path.startsWith("api/")) {
      const name = path === "" ? pageName : path;
      if (await this.#assets.send(name, request.headers["accept-encoding"], response)) return;
      throw new Refusal(404, "there is no such page");
    }
    if (door.type === "local") {
      if (!isLoggedIn(request, door)) throw new Refusal(401, "log in first");
      door.onLetIn(request.socket);
    }
    await this.#answerApi(call, path.slice("api/".length).split("/"));
  }

  async #answerApi({ request, response, query }: DashboardCall, [kind, ...rest]: readonly string[]): Promise<void> {
    const [uid = "", what] = rest;
    switch (kind) {
      case "state":
        return sendJson(response, this.#live.snapshot());
      case "live":
        return this.#showLive(request, response);
      case "pods":
        if (what === "yaml") return await this.#sendYaml(uid, response);
        return sendJson(response, await this.#pod(uid, response));
      case "images":
        return sendJson(response, await this.#shared.images.view());
      case "storage":
        return sendJson(response, await this.#shared.storage.view());
      case "machine":
        return await this.#sendMachine(query, response);
      case "config":
        return sendJson(response, await configView(this.#ports.config, this.#ports.facts.startedAt));
      case "doctor":
        return sendJson(response, await this.#doctor.view(untilLeft(response)));
      case "agent":
        return sendJson(response, await this.#shared.agent.view());
      case "logs":
        return await this.#sendLogs(uid, query, response);
      default:
        throw new Refusal(404, "there is nothing of this name");
    }
  }

  #showLive(request: IncomingMessage, response: ServerResponse): void {
    if (this.#live.isFull) {
      throw new Refusal(503, "as many pages as may be are open already; close one", { "Retry-After": "10" });
    }
    const { "last-event-id": lastEventId, "accept-encoding": accepted } = request.headers;
    const isPacked = acceptsGzip(accepted);
    response.writeHead(200, {
      ...safetyHeaders,
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": neverKept,
      ...(isPacked && { "Content-Encoding": "gzip" }),
      // A proxy that gathers what it passes on would hold back what is live.
      "X-Accel-Buffering": "no",
    });
    response.flushHeaders();
    response.setTimeout(this.#silentMs);
    const seen = typeof lastEventId === "string" ? lastEventId : undefined;
    this.#live.show(response, isPacked ? packedInto(response) : response, seen);
  }

  async #pod(uid: string, response: ServerResponse): Promise<object> {
    const view = await podView(uid, this.#ports, this.#live.sampler, untilLeft(response));
    if (view === undefined) throw new Refusal(404, "there is no such pod on this node");
    return view;
  }

  async #sendMachine(query: URLSearchParams, response: ServerResponse): Promise<void> {
    const cgroup = query.get("processes");
    if (cgroup === null) return sendJson(response, await this.#shared.machine.view());
    const processes = await this.#machine.processes(cgroup, untilLeft(response));
    if (processes === undefined) throw new Refusal(404, "there is no such cgroup");
    sendJson(response, processes);
  }

  async #sendLogs(uid: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const pod = podOf(uid, this.#ports);
    if (pod === undefined) throw new Refusal(404, "there is no such pod on this node");
    if (this.#logs.isFull) {
      throw new Refusal(503, "as many logs as may be are open already; close one", { "Retry-After": "10" });
    }
    response.setTimeout(this.#silentMs);
    await this.#logs.send(pod, query, response, untilLeft(response));
  }

  async #sendYaml(uid: string, response: ServerResponse): Promise<void> {
    const pod = podOf(uid, this.#ports);
    if (pod === undefined) throw new Refusal(404, "there is no such pod on this node");
    const { stringify } = await import("yaml");
    const text = stringify(redactedPod(pod), { lineWidth: 0, aliasDuplicateObjects: false });
    sendBody(response, 200, "text/plain; charset=utf-8", text, {});
  }

  async #login({ request, response }: DashboardCall, door: Door & { readonly type: "local" }): Promise<void> {
    if (request.method !== "POST") throw new Refusal(405, "only POST is answered here", { Allow: "POST" });
    // A page of another site can't send this type without asking first, and nobody would let it.
    if (request.headers["content-type"] !== "application/json") throw new Refusal(415, "want JSON");
    if (request.headers.origin === undefined) throw new Refusal(403, "requests of other sites are not answered");
    const session = await door.sessions.exchange(tokenIn(await readBody(request)));
    if (session === undefined) throw new Refusal(403, "this address was used already, or is not the latest one");
    const settings = "Path=/dashboard/; HttpOnly; SameSite=Strict";
    const { cookie, key } = session;
    sendJson(response, { key }, 200, { "Set-Cookie": `${door.cookieName}=${cookie}; ${settings}` });
  }
}

/** An answer other than success. */
class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof LateError) return new Refusal(504, error.message);
  return error instanceof Refusal ? error : undefined;
}

const mostLoginBytes = 1024;

async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) {
    text += piece;
    if (text.length > mostLoginBytes) throw new Refusal(413, "that is too long for a token");
  }
  return text;
}

function tokenIn(body: string): string {
  try {
    const { token } = JSON.parse(body) ?? {};
    if (typeof token === "string") return token;
  } catch {
    // Not JSON is as wrong as JSON without a token.
  }
  throw new Refusal(400, 'want {"token": "…"}');
}

function isLoggedIn(
  { headers }: IncomingMessage,
  { sessions, cookieName }: Door & { readonly type: "local" },
): boolean {
  const key = headers[keyHeader];
  if (typeof key !== "string") return false;
  const cookies = (headers.cookie ?? "").split(";").map((each) => each.trim());
  return cookies.some(
    (each) => each.startsWith(`${cookieName}=`) && sessions.isKnown({ cookie: each.slice(cookieName.length + 1), key }),
  );
}

function hasLeft(response: ServerResponse): boolean {
  return response.closed || response.destroyed;
}

function sendJson(
  response: ServerResponse,
  value: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendBody(response, status, "application/json", JSON.stringify(value, shownValue), headers);
}

function sendBody(
  response: ServerResponse,
  status: number,
  type: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, {
    ...safetyHeaders,
    ...headers,
    "Content-Type": type,
    "Cache-Control": neverKept,
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(body);
}

function untilLeft(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const leave = (): void => controller.abort(new DOMException("the viewer has left", "AbortError"));
  if (hasLeft(response)) leave();
  else response.once("close", leave);
  return controller.signal;
}
