import { createECDH, createPrivateKey } from "node:crypto";
import { Readable } from "node:stream";
import { Authenticator } from "../../../src/beside/localapi/auth/authenticate.ts";
import { Authorizer } from "../../../src/beside/localapi/auth/authorize.ts";
import { TokenSigner } from "../../../src/beside/localapi/auth/token-signer.ts";
import { announceApi, bootstrap } from "../../../src/beside/localapi/bootstrap.ts";
import { runGarbageCollection } from "../../../src/beside/localapi/controllers/garbage.ts";
import { runNamespaces, serverOptions } from "../../../src/beside/localapi/controllers/namespaces.ts";
import { Api } from "../../../src/beside/localapi/http/api.ts";
import { pathHandler } from "../../../src/beside/localapi/http/paths.ts";
import type { Reply } from "../../../src/beside/localapi/http/reply.ts";
import type { JsonObject } from "../../../src/beside/localapi/json.ts";
import { type Kind, storedKinds } from "../../../src/beside/localapi/kinds/index.ts";
import type { ApiObject } from "../../../src/beside/localapi/object.ts";
import { createObject } from "../../../src/beside/localapi/rest/create.ts";
import { type DeleteOptions, deleteObject } from "../../../src/beside/localapi/rest/delete.ts";
import type { World } from "../../../src/beside/localapi/rest/world.ts";
import { specialHandlers } from "../../../src/beside/localapi/special/index.ts";
import { StatusError } from "../../../src/beside/localapi/status-error.ts";
import { type Change, Store } from "../../../src/beside/localapi/store/store.ts";
import { strategyOf } from "../../../src/beside/localapi/strategies/index.ts";
import { ConnectionError, type HttpRequest, type HttpResponse } from "../../../src/connections/kube/transport/http.ts";
import { never, onAbort } from "../../../src/ground/base/index.ts";
import { Dice } from "../machine/dice.ts";
import type { Machine } from "../machine/machine.ts";
import type { Life } from "../machine/timeline.ts";
import { fateOf } from "./call.ts";
import type { Trace } from "./trace.ts";
import { calm, type Weather } from "./weather.ts";

export const nodeName = "sim";
export const nodeToken = "token-of-the-node";

interface Stream {
  readonly life: Life | undefined;
  readonly body: Readable;
  /** When the last event that is on its way arrives. */
  arrivesAt: number;
  isStalled: boolean;
  stop(): void;
}

/** The local API in memory, behind a connection on which anything can go wrong. */
export class ApiNeighbour {
  weather: Weather = { ...calm };
  /** False: nothing answers at its address. */
  isUp = true;
  /** Packets vanish without a word. */
  isCutOff = false;
  onChange: (change: Change) => void = () => {};
  readonly #machine: Machine;
  readonly #trace: Trace;
  readonly #dice: Dice;
  readonly #streams = new Set<Stream>();
  #store: Store;
  #world: World;
  #api: Api;

  constructor(machine: Machine, seed: number, trace: Trace) {
    this.#machine = machine;
    this.#trace = trace;
    this.#dice = new Dice(seed, "API");
    ({ store: this.#store, world: this.#world, api: this.#api } = this.#begin(undefined));
  }

  get watches(): number {
    return this.#streams.size;
  }

  list(kind: Kind): readonly ApiObject[] {
    return this.#store.list(kind.storage);
  }

  get(kind: Kind, key: string): ApiObject | undefined {
    return this.#store.get(kind.storage, key);
  }

  create(kind: Kind, namespace: string, object: object): ApiObject {
    return createObject(this.#world, kind, namespace, object, serverOptions);
  }

  delete(kind: Kind, namespace: string, name: string, options: DeleteOptions = {}): void {
    deleteObject(this.#world, kind, namespace, name, options, serverOptions);
  }

  put(kind: Kind, object: ApiObject): void {
    this.#store.put(kind.storage, object);
  }

  /** Forgets what watches could resume from. */
  compact(): void {
    this.#store.published.compact();
  }

  /** Comes back with all objects, and without a memory of how they came to be. */
  restart(): void {
    this.cut("the server restarts");
    const { store } = this;
    const objects = storedKinds.flatMap((kind) =>
      store.list(kind.storage).map((object) => ({ resource: kind.storage, object })),
    );
    ({
      store: this.#store,
      world: this.#world,
      api: this.#api,
    } = this.#begin({
      revision: store.published.revision,
      objects,
    }));
    this.isUp = true;
  }

  get store(): Store {
    return this.#store;
  }

  /** Every connection breaks. */
  cut(why: string): void {
    for (const stream of [...this.#streams]) this.#break(stream, why);
  }

  /** Watches stay open, but nothing comes any more. */
  stall(): void {
    for (const stream of this.#streams) stream.isStalled = true;
  }

  end(life: Life): void {
    for (const stream of [...this.#streams]) {
      if (stream.life !== life) continue;
      this.#streams.delete(stream);
      stream.stop();
    }
  }

  ask(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    const { timeline, life } = this.#machine;
    return new Promise((resolve, reject) => {
      let isSettled = false;
      const settle = (act: () => void): void => {
        if (isSettled) return;
        isSettled = true;
        listening[Symbol.dispose]();
        act();
      };
      const listening = onAbort(signal, () => settle(() => reject(signal.reason)));
      if (isSettled) return;
      const back = (act: () => void): void => void timeline.after(this.#wireMs(), life, () => settle(act));
      const fail = (sent: "no" | "maybe", why: string): void => back(() => reject(new ConnectionError(why, sent)));
      const fate = fateOf(this.#dice, this.weather);
      const slowness = this.#dice.chance(this.weather.slow) ? this.#dice.between(200, 15_000) : 0;
      timeline.after(this.#wireMs() + slowness, undefined, () => {
        const what = `${request.method} ${request.path}`;
        // An API server drops what it has not begun when the connection ends, as it does with the process.
        if (life?.isOver === true && slowness > 0) return;
        if (this.isCutOff || fate === "hung") return;
        if (!this.isUp) {
          fail("no", "connect ECONNREFUSED");
          return;
        }
        if (fate === "refused") {
          this.#trace.add("fault", `API refuses ${what}`);
          if (this.#dice.chance(0.3)) fail("no", "connection reset before it was sent");
          else back(() => resolve(this.#refusal()));
          return;
        }
        this.#serve(request, life).then(
          (response) => {
            if (fate !== "lost") {
              back(() => {
                // The connection is the signal's for as long as the answer lasts.
                const ending = onAbort(signal, () => response.body.destroy(new Error("aborted")));
                response.body.once("close", () => ending[Symbol.dispose]());
                resolve(response);
              });
              return;
            }
            this.#trace.add("fault", `API's answer to ${what} is lost`);
            response.body.destroy();
            fail("maybe", "socket hang up");
          },
          (error: unknown) => {
            this.#machine.escapes.push(`the API failed: ${String(error)}`);
          },
        );
      });
    });
  }

  async #serve(request: HttpRequest, life: Life | undefined): Promise<HttpResponse> {
    const { body } = request;
    let reply: Reply;
    try {
      reply = await this.#api.serve({
        method: request.method,
        url: new URL(request.path, "https://api"),
        contentType: headerOf(request, "content-type"),
        accept: headerOf(request, "accept"),
        credentials: { authorization: headerOf(request, "authorization") },
        stream: (async function* () {
          if (body !== undefined) yield Buffer.from(body);
        })(),
        warn() {},
        clientLeft: () => never,
      });
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      reply = { type: "json", code: error.code, body: error.status() };
    }
    if (request.method !== "GET") {
      const code = reply.type === "watch" ? 200 : reply.code;
      this.#trace.add("api", `${request.method} ${request.path} ${code}`);
    }
    switch (reply.type) {
      case "json":
        return responseOf(reply.code, JSON.stringify(reply.body));
      case "text":
        return responseOf(reply.code, reply.text);
      case "watch":
        return { status: 200, header: () => undefined, body: this.#watch(reply, life) };
      default:
        throw new Error(`answers of type ${reply.type} are not simulated`);
    }
  }

  #watch(reply: Reply & { readonly type: "watch" }, life: Life | undefined): Readable {
    const { timeline } = this.#machine;
    const stream: Stream = {
      life,
      body: new Readable({ read() {} }),
      arrivesAt: 0,
      isStalled: false,
      stop: () => {},
    };
    const arrive = (act: () => void): void => {
      if (stream.isStalled || this.isCutOff) {
        stream.isStalled = true;
        return;
      }
      const at = Math.max(stream.arrivesAt, timeline.now + this.#wireMs());
      stream.arrivesAt = at;
      timeline.after(at - timeline.now, life, act);
    };
    this.#streams.add(stream);
    const send = (event: JsonObject): void => {
      if (!this.#streams.has(stream)) return;
      if (this.#dice.chance(this.weather.dropped)) {
        this.#trace.add("fault", "a watch breaks with an event under way");
        this.#break(stream, "connection reset");
        return;
      }
      const line = Buffer.from(`${JSON.stringify(event)}\n`);
      arrive(() => stream.body.push(line));
      if (this.#dice.chance(this.weather.doubled)) arrive(() => stream.body.push(line));
    };
    stream.body.once("close", () => {
      this.#streams.delete(stream);
      stream.stop();
    });
    const stop = reply.start(send, () => arrive(() => stream.body.push(null)));
    stream.stop = stop;
    if (!this.#streams.has(stream)) stop();
    return stream.body;
  }

  #break(stream: Stream, why: string): void {
    this.#streams.delete(stream);
    stream.stop();
    this.#machine.timeline.after(this.#wireMs(), stream.life, () => {
      stream.body.on("error", () => {});
      stream.body.destroy(new Error(why));
    });
  }

  #refusal(): HttpResponse {
    const code = this.#dice.pick([500, 503, 429, 504]);
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", code, message: "made up", reason: "" };
    return responseOf(code, JSON.stringify(status), this.#dice.chance(0.5) ? "1" : undefined);
  }

  #wireMs(): number {
    return this.#dice.chance(0.01) ? this.#dice.between(5, 200) : this.#dice.between(0.2, 3);
  }

  #begin(
    state:
      | { readonly revision: number; readonly objects: readonly { resource: string; object: ApiObject }[] }
      | undefined,
  ) {
    const clock = this.#machine.timeline.clock(undefined);
    const store = new Store({
      keptChanges: 500,
      onListenerError: (error) => this.#machine.escapes.push(`a controller of the API failed: ${String(error)}`),
      ...(state !== undefined && { state }),
    });
    store.subscribe("*", (change) => this.onChange(change));
    const world: World = { store, clock, strategyOf };
    bootstrap(world);
    runNamespaces(world, "");
    runGarbageCollection(world);
    const signer = new TokenSigner(tokenKey(), "https://kubernetes.default.svc.cluster.local");
    const staticTokens = new Map([[nodeToken, { name: `system:node:${nodeName}`, groups: ["system:nodes"] }]]);
    const authenticator = new Authenticator({ clock, store, signer, staticTokens });
    const authorizer = new Authorizer(store, []);
    const kubeletIdentity = { certPem: "", keyPem: "" };
    const special = specialHandlers({ authenticator, authorizer, signer, kubeletIdentity });
    const api = new Api({ world, authenticator, authorizer, special, handlePath: pathHandler(signer) });
    if (state === undefined) announceApi(world, "10.0.0.1", 6443);
    return { store, world, api };
  }
}

function headerOf({ headers }: HttpRequest, name: string): string {
  const value = (headers as Readonly<Record<string, unknown>>)[name];
  return typeof value === "string" ? value : "";
}

function responseOf(status: number, text: string, retryAfter?: string): HttpResponse {
  return {
    status,
    header: (name) => (name === "retry-after" ? retryAfter : undefined),
    body: new WholeBody(text) as unknown as Readable,
  };
}

/** An answer that is all there: of a stream, just what the agent's client uses. */
class WholeBody {
  readonly #text: string;
  readonly #onClose: (() => void)[] = [];
  #isOver = false;
  #failure: Error | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  once(event: string, act: () => void): this {
    if (event !== "close") throw new Error(`the body of an answer has no event "${event}"`);
    this.#onClose.push(act);
    return this;
  }

  destroy(error?: Error): this {
    this.#failure ??= error;
    this.#close();
    return this;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isOver) return;
    try {
      yield Buffer.from(this.#text);
    } finally {
      this.#close();
    }
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const act of this.#onClose) act();
  }
}

let key: string | undefined;

/** The same in every run, and nobody's secret. */
function tokenKey(): string {
  if (key !== undefined) return key;
  const curve = createECDH("prime256v1");
  curve.setPrivateKey(Buffer.alloc(32, 1));
  const point = curve.getPublicKey();
  const text = (bytes: Buffer): string => bytes.toString("base64url");
  const jwk = {
    ...{ kty: "EC", crv: "P-256", d: text(Buffer.alloc(32, 1)) },
    ...{ x: text(point.subarray(1, 33)), y: text(point.subarray(33)) },
  };
  key = createPrivateKey({ key: jwk, format: "jwk" }).export({ type: "pkcs8", format: "pem" }).toString();
  return key;
}
