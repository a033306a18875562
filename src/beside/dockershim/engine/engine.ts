import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, cutText } from "../../../ground/base/index.ts";
import {
  type EngineExec,
  type EngineImage,
  type EngineInfo,
  engineExec,
  engineImage,
  engineInfo,
  type InspectedContainer,
  inspectedContainer,
  type ListedContainer,
  listedContainer,
} from "./answers.ts";
import { EngineError, EngineTimeout, EngineUnavailable } from "./errors.ts";
import { type EngineEvent, parseEvent, wantedEvents } from "./events.ts";
import { fieldsOf, numberIn, textIn } from "./fields.ts";
import { EngineHttp, type EngineHttpSettings, type EngineOperation, type EngineRequest } from "./http.ts";
import { linesOf } from "./lines.ts";

/** API versions as numbers that compare: 1.41 is 41. */
const oldestApi = 41;
/** The newest whose shapes we know; Engine 29 refuses all below it. */
const newestApi = 44;
/** An event has all labels of its container. */
const longestEventLine = 4 * 1024 * 1024;
/** Docker holds an event back until the next thing happens or the connection ends; a quiet one is fine. */
const versionWithinMs = 10_000;

export interface EngineVersion {
  readonly version: string;
  readonly apiVersion: string;
}

export interface ExecBody {
  readonly cmd: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

/** How one call of Docker went; those that were given up by who asked are not told. */
export interface EngineCall {
  readonly operation: EngineOperation;
  readonly outcome: "done" | "failed" | "timed out";
  readonly durationMs: number;
}

/** Docker's API, as far as the shim uses it. Speaks the newest version that both know. */
export class Engine {
  readonly #http: EngineHttp;
  readonly #clock: Clock;
  readonly #onCall: (call: EngineCall) => void;
  #api: number | undefined;

  constructor(settings: EngineHttpSettings, clock: Clock, onCall: (call: EngineCall) => void = () => {}) {
    this.#http = new EngineHttp(settings, clock);
    this.#clock = clock;
    this.#onCall = onCall;
  }

  close(): void {
    this.#http.close();
  }

  /** The API version in use; asks Docker when it is not known, or not any more. */
  async api(signal: AbortSignal): Promise<number> {
    this.#api ??= await this.#negotiate(signal);
    return this.#api;
  }

  async version(signal: AbortSignal): Promise<EngineVersion> {
    const request = { method: "GET", operation: "version", path: "/version", withinMs: versionWithinMs } as const;
    const fields = fieldsOf(await this.#json(request, signal));
    const version = textIn(fields, "Version");
    return told({ version, apiVersion: textIn(fields, "ApiVersion") }, version, request.path);
  }

  async info(signal: AbortSignal): Promise<EngineInfo> {
    const request = { method: "GET", operation: "info", path: "/info" } as const;
    const found = engineInfo(await this.#json(request, signal));
    return told(found, found.rootDir, request.path);
  }

  async createContainer(name: string, body: object, signal: AbortSignal): Promise<string> {
    const request = {
      method: "POST",
      operation: "create_container",
      path: "/containers/create",
      query: { name },
      body,
    } as const;
    const id = textIn(fieldsOf(await this.#json(request, signal)), "Id");
    if (id === "") throw new EngineUnavailable("docker made a container and did not say which");
    return id;
  }

  /** False when it ran already. */
  async startContainer(id: string, signal: AbortSignal): Promise<boolean> {
    const { status } = await this.#call(
      { method: "POST", operation: "start_container", path: `/containers/${encoded(id)}/start` },
      signal,
    );
    return status !== 304;
  }

  async killContainer(id: string, killSignal: string, signal: AbortSignal): Promise<void> {
    const query = { signal: killSignal };
    await this.#call(
      { method: "POST", operation: "stop_container", path: `/containers/${encoded(id)}/kill`, query },
      signal,
    );
  }

  /** Resolves when it does not run, as long as that takes. */
  async waitContainer(id: string, signal: AbortSignal): Promise<void> {
    const path = `/containers/${encoded(id)}/wait`;
    const answer = await this.#stream(
      { method: "POST", path, query: { condition: "not-running" }, withinMs: "any" },
      signal,
    );
    try {
      for await (const _ of answer);
    } catch (error) {
      signal.throwIfAborted();
      throw new EngineUnavailable("docker broke off its answer", error);
    }
    signal.throwIfAborted();
  }

  async removeContainer(
    id: string,
    signal: AbortSignal,
    force: "force" | "only when stopped" = "force",
  ): Promise<void> {
    const query = { v: 1, force: force === "force" ? 1 : 0 };
    await this.#call(
      { method: "DELETE", operation: "remove_container", path: `/containers/${encoded(id)}`, query },
      signal,
    );
  }

  async updateContainer(id: string, body: object, signal: AbortSignal): Promise<void> {
    await this.#call(
      { method: "POST", operation: "update_container", path: `/containers/${encoded(id)}/update`, body },
      signal,
    );
  }

  async inspectContainer(
    id: string,
    signal: AbortSignal,
    sizes: "with sizes" | "plain" = "plain",
  ): Promise<InspectedContainer> {
    const hasSizes = sizes === "with sizes";
    const query = hasSizes ? { size: 1 } : {};
    const operation = hasSizes ? "inspect_container_withsize" : "inspect_container";
    const path = `/containers/${encoded(id)}/json`;
    const found = inspectedContainer(await this.#json({ method: "GET", operation, path, query }, signal));
    return told(found, found.id, path);
  }

  /** All containers, running or not, that have every one of these labels (`key` or `key=value`). */
  async listContainers(labels: readonly string[], signal: AbortSignal): Promise<readonly ListedContainer[]> {
    const query = { all: 1, filters: JSON.stringify({ label: labels }) };
    const path = "/containers/json";
    const answer = await this.#json({ method: "GET", operation: "list_containers", path, query }, signal);
    return listed(answer, path).map(listedContainer);
  }

  async listImages(reference: string | undefined, signal: AbortSignal): Promise<readonly EngineImage[]> {
    const query = reference === undefined ? {} : { filters: JSON.stringify({ reference: [reference] }) };
    const path = "/images/json";
    const answer = await this.#json({ method: "GET", operation: "list_images", path, query }, signal);
    return listed(answer, path).map(engineImage);
  }

  async inspectImage(name: string, signal: AbortSignal): Promise<EngineImage> {
    const path = `/images/${encodedName(name)}/json`;
    const found = engineImage(await this.#json({ method: "GET", operation: "inspect_image", path }, signal));
    return told(found, found.id, path);
  }

  async removeImage(name: string, signal: AbortSignal): Promise<void> {
    await this.#call({ method: "DELETE", operation: "remove_image", path: `/images/${encodedName(name)}` }, signal);
  }

  /** The lines of its progress; a failure may be among them. */
  async pullImage(
    { repository, tag, auth }: { readonly repository: string; readonly tag: string; readonly auth: string },
    signal: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const query = { fromImage: repository, tag };
    const headers = { "X-Registry-Auth": auth };
    const request = { method: "POST", path: "/images/create", query, headers, withinMs: "any" } as const;
    return linesOf(await this.#stream(request, signal), longestEventLine);
  }

  /** Brings images in from an archive. */
  async loadImages(archive: Uint8Array, signal: AbortSignal): Promise<void> {
    const bytes = { type: "application/x-tar", content: archive };
    await this.#call({ method: "POST", path: "/images/load", query: { quiet: 1 }, bytes, withinMs: "any" }, signal);
  }

  /** Bytes of all layers of all images, each counted once; undefined where Docker can't tell quickly. */
  async layersSize(signal: AbortSignal): Promise<number | undefined> {
    if ((await this.api(signal)) < 42) return undefined;
    const answer = await this.#json({ method: "GET", path: "/system/df", query: { type: "image" } }, signal);
    return numberIn(fieldsOf(answer), "LayersSize");
  }

  async createExec(containerId: string, body: ExecBody, signal: AbortSignal): Promise<string> {
    const answer = await this.#json(
      {
        method: "POST",
        operation: "create_exec",
        path: `/containers/${encoded(containerId)}/exec`,
        body: {
          AttachStdin: body.stdin,
          AttachStdout: body.stdout,
          AttachStderr: body.stderr,
          Tty: body.tty,
          Cmd: body.cmd,
        },
      },
      signal,
    );
    const id = textIn(fieldsOf(answer), "Id");
    if (id === "") throw new EngineUnavailable("docker prepared a command and did not say which");
    return id;
  }

  /** What the command prints, in frames unless it has a terminal; the stream ends with the command. */
  async startExec(id: string, tty: boolean, signal: AbortSignal): Promise<Duplex> {
    const body = { Detach: false, Tty: tty };
    return await this.#hijack(
      { method: "POST", operation: "start_exec", path: `/exec/${encoded(id)}/start`, body },
      signal,
    );
  }

  async inspectExec(id: string, signal: AbortSignal): Promise<EngineExec> {
    return engineExec(
      await this.#json({ method: "GET", operation: "inspect_exec", path: `/exec/${encoded(id)}/json` }, signal),
    );
  }

  async resizeExec(id: string, size: TerminalSize, signal: AbortSignal): Promise<void> {
    await this.#call(
      {
        method: "POST",
        operation: "resize_exec",
        path: `/exec/${encoded(id)}/resize`,
        query: { h: size.rows, w: size.columns },
      },
      signal,
    );
  }

  async attach(
    id: string,
    streams: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean },
    signal: AbortSignal,
  ): Promise<Duplex> {
    const word = (on: boolean): number | undefined => (on ? 1 : undefined);
    const query = { stream: 1, stdin: word(streams.stdin), stdout: word(streams.stdout), stderr: word(streams.stderr) };
    return await this.#hijack(
      { method: "POST", operation: "attach", path: `/containers/${encoded(id)}/attach`, query },
      signal,
    );
  }

  async resizeContainer(id: string, size: TerminalSize, signal: AbortSignal): Promise<void> {
    const query = { h: size.rows, w: size.columns };
    await this.#call(
      { method: "POST", operation: "resize_container", path: `/containers/${encoded(id)}/resize`, query },
      signal,
    );
  }

  /** Events as they happen. Ends when Docker ends it. `opened`: it listens. */
  async *events(signal: AbortSignal, opened: () => void): AsyncGenerator<EngineEvent, void> {
    const query = { filters: JSON.stringify(wantedEvents) };
    const stream = await this.#stream({ method: "GET", path: "/events", query }, signal);
    opened();
    try {
      for await (const line of linesOf(stream, longestEventLine)) {
        const event = parseEvent(line);
        if (event !== undefined) yield event;
      }
    } finally {
      // Behind a socket that systemd holds a Docker may be replaced, and nothing was ever unreachable.
      this.#api = undefined;
    }
  }

  async #negotiate(signal: AbortSignal): Promise<number> {
    const { headers } = await this.#http.call(
      { method: "GET", operation: "version", path: "/_ping", withinMs: versionWithinMs },
      signal,
    );
    const offered = headers["api-version"];
    const [, major, minor] = /^(\d+)\.(\d+)$/.exec(typeof offered === "string" ? offered : "1.24") ?? [];
    const server = major === "1" ? Number(minor) : Number.NaN;
    if (!(server >= oldestApi)) throw new ApiTooOldError(String(offered ?? "1.24"));
    return Math.min(server, newestApi);
  }

  async #versioned(request: EngineRequest, signal: AbortSignal): Promise<EngineRequest> {
    return { ...request, path: `/v1.${await this.api(signal)}${request.path}` };
  }

  async #call(request: EngineRequest, signal: AbortSignal) {
    return await this.#watched(
      request,
      signal,
      async () => await this.#http.call(await this.#versioned(request, signal), signal),
    );
  }

  async #stream(request: EngineRequest, signal: AbortSignal): Promise<IncomingMessage> {
    return await this.#watched(
      request,
      signal,
      async () => await this.#http.stream(await this.#versioned(request, signal), signal),
    );
  }

  async #hijack(request: EngineRequest, signal: AbortSignal): Promise<Duplex> {
    return await this.#watched(
      request,
      signal,
      async () => await this.#http.hijack(await this.#versioned(request, signal), signal),
    );
  }

  async #json(request: EngineRequest, signal: AbortSignal): Promise<unknown> {
    const { body } = await this.#call(request, signal);
    try {
      return JSON.parse(body.toString("utf8"));
    } catch (error) {
      throw new EngineUnavailable(`docker answered ${request.path} with what is no JSON`, error);
    }
  }

  /** Tells how it went. A Docker that could not be reached may be another version when it is back. */
  async #watched<Result>(
    { operation }: EngineRequest,
    signal: AbortSignal,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const begunAt = this.#clock.monotonic();
    const tell = (outcome: EngineCall["outcome"]): void => {
      if (operation !== undefined) this.#onCall({ operation, outcome, durationMs: this.#clock.monotonic() - begunAt });
    };
    try {
      const result = await work();
      tell("done");
      return result;
    } catch (error) {
      if (error instanceof EngineUnavailable) this.#api = undefined;
      if (!signal.aborted) tell(error instanceof EngineTimeout ? "timed out" : "failed");
      throw error;
    }
  }
}

export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
}

/** Waiting does not make it newer. */
export class ApiTooOldError extends Error {
  override readonly name = "ApiTooOldError";

  constructor(found: string) {
    super(`docker API version is older than 1.${oldestApi}: found ${found}`);
  }
}

/** What is no list is not an empty one: pods that nobody lists are made anew. */
function listed(answer: unknown, path: string): readonly unknown[] {
  if (answer === null) return [];
  if (!Array.isArray(answer)) throw new EngineUnavailable(`docker answered ${path} with what is no list`);
  return answer;
}

/** An answer about nothing is not one that there is nothing. `sign`: what is in every answer. */
function told<Told>(answer: Told, sign: string, path: string): Told {
  if (sign === "") throw new EngineUnavailable(`docker answered ${path} with next to nothing`);
  return answer;
}

function encoded(id: string): string {
  return encodeURIComponent(id);
}

/** Names of images have slashes, and Docker wants them as they are; but none may lead out of its place in the path. */
function encodedName(name: string): string {
  const parts = name.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) {
    throw new EngineError(400, `invalid reference format: "${cutText(name, 256)}"`);
  }
  return parts.map(encodeURIComponent).join("/");
}
