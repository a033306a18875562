import {
  type Clock,
  LinkedSignal,
  type Logger,
  type NoteAttribute,
  never,
  noTracer,
  type TokenBucket,
  type Tracer,
  withDeadline,
} from "../../ground/base/index.ts";
import type { DeleteOptions, ListMeta } from "../../ground/model/index.ts";
import type { Credentials } from "./access/index.ts";
import { ApiError, apiErrorOf } from "./api-error.ts";
import { readText } from "./body.ts";
import { type KubeObject, type ObjectRef, pathOf, type Resource } from "./resources.ts";
import { ConnectionError, type HttpRequest, type HttpResponse, type Transport } from "./transport/index.ts";

export interface ListOptions {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  /** "0": whatever the server has at hand; undefined: the newest. */
  readonly resourceVersion?: string | undefined;
}

export interface ObjectList<Kind> {
  readonly metadata?: ListMeta | undefined;
  readonly items: readonly Kind[];
}

export interface WatchOptions extends Omit<ListOptions, "limit" | "continue"> {
  readonly timeoutSeconds: number;
}

export type Patch =
  | { readonly type: "json"; readonly body: readonly unknown[] }
  | { readonly type: "merge" | "strategic"; readonly body: object }
  | { readonly type: "apply"; readonly body: object; readonly fieldManager: string; readonly force: boolean };

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

export interface KubeClientSettings {
  readonly userAgent: string;
  /** How long one request may take in all, waiting for the server's "try again later" included. */
  readonly timeoutMs: number;
  /** Undefined: as many requests as callers like. */
  readonly throttle: TokenBucket | undefined;
}

/** One exchange with the API server, up to the head of its answer; for metrics. */
export interface RequestReport {
  readonly method: string;
  /** undefined: there was no answer. */
  readonly status: number | undefined;
  readonly durationMs: number;
}

export interface KubeClientPorts {
  readonly transport: Pick<Transport, "send">;
  readonly credentials: Pick<Credentials, "refused">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onRequest?: ((report: RequestReport) => void) | undefined;
  readonly tracer?: Tracer | undefined;
}

const mostRetries = 10;
const throttleWorthALineMs = 1_000;
/** How long the server may take to say that a watch has begun. */
const watchOpensMs = 30_000;
/** What the server says of a refusal, and how long it may take to say it; the status alone decides what becomes of it. */
const longestRefusal = 1024 * 1024;
const refusalMs = 10_000;

/** Typed requests to the API server. Rejects with ApiError, ConnectionError, CredentialError or the signal's reason. */
export class KubeClient {
  readonly #settings: KubeClientSettings;
  readonly #ports: KubeClientPorts;

  constructor(settings: KubeClientSettings, ports: KubeClientPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  get<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    options: Pick<ListOptions, "resourceVersion">,
    signal: AbortSignal,
  ): Promise<Kind> {
    return this.#call("GET", `${pathOf(resource, ref)}${queryOf(options)}`, undefined, signal);
  }

  list<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: Pick<ObjectRef, "namespace">,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<ObjectList<Kind>> {
    return this.#call("GET", `${pathOf(resource, ref)}${queryOf(options)}`, undefined, signal);
  }

  /** POST, to a subresource when the reference names one (`serviceaccounts/x/token`). */
  create<Kind extends KubeObject, Body extends KubeObject = Kind>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    body: Body,
    signal: AbortSignal,
  ): Promise<Body> {
    return this.#call("POST", pathOf(resource, ref), json(body), signal);
  }

  update<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    body: Kind,
    signal: AbortSignal,
  ): Promise<Kind> {
    return this.#call("PUT", pathOf(resource, ref), json(body), signal);
  }

  patch<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    patch: Patch,
    signal: AbortSignal,
  ): Promise<Kind> {
    const query = patch.type === "apply" ? { fieldManager: patch.fieldManager, force: patch.force } : {};
    const body = { type: patchTypes[patch.type], text: JSON.stringify(patch.body) };
    return this.#call("PATCH", `${pathOf(resource, ref)}${queryOf(query)}`, body, signal);
  }

  /** Resolves with the object as it was last, or with a Status, as the server likes. */
  async delete(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    options: Pick<DeleteOptions, "gracePeriodSeconds" | "preconditions" | "propagationPolicy">,
    signal: AbortSignal,
  ): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", ...options };
    await this.#call("DELETE", pathOf(resource, ref), json(body), signal);
  }

  async deleteCollection(
    resource: Resource<KubeObject>,
    ref: Pick<ObjectRef, "namespace">,
    options: Pick<ListOptions, "fieldSelector" | "labelSelector">,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#call("DELETE", `${pathOf(resource, ref)}${queryOf(options)}`, undefined, signal);
  }

  /** GET of any path, such as /healthz; resolves with the text of a 2xx answer. */
  async getText(path: string, signal: AbortSignal): Promise<string> {
    return this.#exchange({ method: "GET", path, body: undefined }, (text) => text, signal);
  }

  /** The open stream of a watch; its body is to be read or destroyed. Ends when the signal fires. */
  async openWatch(
    resource: Resource<KubeObject>,
    ref: Pick<ObjectRef, "namespace">,
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const path = `${pathOf(resource, ref)}${queryOf({ ...options, watch: true, allowWatchBookmarks: true })}`;
    const request = { method: "GET", path, body: undefined } as const;
    await this.#throttle(request, signal);
    // Not withDeadline: only the beginning is limited, the stream itself lasts.
    const opening = new LinkedSignal(signal);
    const timer = this.#ports.clock.after(watchOpensMs, () => opening.abort(this.#late(request, watchOpensMs)));
    const release = (): void => opening[Symbol.dispose]();
    try {
      signal.throwIfAborted();
      const response = await this.#sendAs(request, opening.signal);
      if (response.status !== 200) throw await this.#refusal(request, response);
      response.body.once("close", release);
      return response;
    } catch (error) {
      release();
      throw error;
    } finally {
      timer.cancel();
    }
  }

  #call<Answer>(
    method: HttpRequest["method"],
    path: string,
    body: ClientRequest["body"],
    signal: AbortSignal,
  ): Promise<Answer> {
    return this.#exchange({ method, path, body }, (text) => this.#parse(method, path, text), signal);
  }

  /** Node takes the end of a connection for the end of an answer; only its last brace tells that it is whole. */
  #parse<Answer>(method: string, path: string, text: string): Answer {
    try {
      return JSON.parse(text) as Answer;
    } catch {
      throw new ConnectionError(`The API server's answer to ${method} ${bare(path)} is not complete JSON`, "maybe");
    }
  }

  #exchange<Answer>(request: ClientRequest, read: (text: string) => Answer, signal: AbortSignal): Promise<Answer> {
    const { timeoutMs } = this.#settings;
    const late = (): Error => this.#late(request, timeoutMs);
    return withDeadline(this.#ports.clock, timeoutMs, late, signal, async (bounded) => {
      let failures = 0;
      let patience = mostRetries;
      for (;;) {
        await this.#throttle(request, bounded);
        try {
          const response = await this.#sendAs(request, bounded);
          if (response.status < 200 || response.status > 299) throw await this.#refusal(request, response);
          return read(await readText(response.body, bounded));
        } catch (error) {
          if (bounded.aborted) throw bounded.reason;
          if (error instanceof ApiError && asksForPatience(error) && patience-- > 0) await this.#wait(error, bounded);
          // Reading twice does no harm, and most often only the connection was at fault.
          else if (request.method !== "GET" || !wasCutOff(error) || failures++ > 0) throw error;
        }
      }
    });
  }

  async #wait({ request, code, retryAfterMs = 0 }: ApiError, signal: AbortSignal): Promise<void> {
    const waitMs = Math.max(retryAfterMs, 1_000);
    this.#ports.log.debug(2, "The API server asks for patience", { request, code, waitMs });
    await this.#ports.clock.sleep(waitMs, signal);
  }

  async #throttle(request: ClientRequest, signal: AbortSignal): Promise<void> {
    const waitedMs = (await this.#settings.throttle?.take(signal)) ?? 0;
    if (waitedMs < throttleWorthALineMs) return;
    this.#ports.log.info("Waited before a request due to client-side throttling", {
      delayMs: Math.round(waitedMs),
      verb: request.method,
      path: bare(request.path),
    });
  }

  /** Sends as whom we are; when refused, once more with credentials that are read afresh. */
  async #sendAs(request: ClientRequest, signal: AbortSignal): Promise<HttpResponse> {
    const { transport, credentials, clock, onRequest, tracer = noTracer } = this.#ports;
    const { method, path, body } = request;
    const usual = {
      accept: "application/json",
      "user-agent": this.#settings.userAgent,
      ...(body !== undefined && { "content-type": body.type }),
    };
    const span = {
      name: `HTTP ${method}`,
      kind: "client",
      attributes: { "http.method": method, "http.target": bare(path) },
    } as const;
    const send = async (note: NoteAttribute): Promise<HttpResponse> => {
      const startedAt = clock.monotonic();
      let status: number | undefined;
      const traceparent = tracer.traceparent();
      const headers = traceparent === undefined ? usual : { ...usual, traceparent };
      try {
        const answer = await transport.send({ method, path, headers, body: body?.text }, signal);
        status = answer.status;
        note("http.status_code", status);
        return answer;
      } finally {
        onRequest?.({ method, status, durationMs: clock.monotonic() - startedAt });
      }
    };
    const response = await tracer.span(span, send);
    if (response.status !== 401 || !credentials.refused()) return response;
    response.body.destroy();
    return tracer.span(span, send);
  }

  async #refusal({ method, path }: ClientRequest, response: HttpResponse): Promise<ApiError> {
    const timer = this.#ports.clock.after(refusalMs, () => response.body.destroy(new Error("it takes too long")));
    const text = await readText(response.body, never, longestRefusal).catch(() => "");
    timer.cancel();
    response.body.destroy();
    return apiErrorOf(`${method} ${bare(path)}`, response.status, text, response.header("retry-after"));
  }

  #late({ method, path }: ClientRequest, ms: number): ConnectionError {
    return new ConnectionError(`The API server did not answer ${method} ${bare(path)} within ${ms / 1_000} s`, "maybe");
  }
}

interface ClientRequest {
  readonly method: HttpRequest["method"];
  readonly path: string;
  readonly body: { readonly type: string; readonly text: string } | undefined;
}

function asksForPatience({ code, retryAfterMs }: ApiError): boolean {
  return retryAfterMs !== undefined && (code === 429 || code >= 500);
}

function wasCutOff(error: unknown): boolean {
  return error instanceof ConnectionError && error.sent === "maybe";
}

type QueryParameters = ListOptions &
  Partial<WatchOptions> & {
    readonly watch?: boolean;
    readonly allowWatchBookmarks?: boolean;
    readonly fieldManager?: string;
    readonly force?: boolean;
  };

/** Without the query. */
function bare(path: string): string {
  return path.split("?", 1)[0] ?? path;
}

function json(body: object): { type: string; text: string } {
  return { type: "application/json", text: JSON.stringify(body) };
}

function queryOf(parameters: QueryParameters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
