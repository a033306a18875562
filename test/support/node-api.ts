import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { request as requestTls } from "node:https";
import type { ConnectionOptions } from "node:tls";
import type { RuntimeService } from "../../src/connections/cri/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { ObservedPod, Pod, PodUid } from "../../src/ground/model/index.ts";
import type { DispatchPorts } from "../../src/node/server/api/dispatch.ts";
import { openGate } from "../../src/node/server/api/gate.ts";
import type { ApiPorts, ApiSettings } from "../../src/node/server/api/node-api.ts";
import { NodeServer, type ServingTls } from "../../src/node/server/api/node-server.ts";
import type { ApiMount } from "../../src/node/server/api/router.ts";
import {
  HealthRegistry,
  LazyStatistics,
  type LocalViews,
  type PodViewChange,
  type RuntimeViews,
} from "../../src/node/server/index.ts";
import { PodObserver } from "../../src/pod/runtime/index.ts";

/** The pods of an agent, changed by the test. */
export class FakeViews implements LocalViews {
  readonly #pods = new Map<string, Pod>();
  readonly #listeners = new Set<(change: PodViewChange) => void>();

  constructor(...pods: readonly Pod[]) {
    for (const pod of pods) this.#pods.set(pod.metadata?.uid ?? "", pod);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  readonly mirrors = new Map<string, PodUid>();

  ownUid(apiUid: string): PodUid {
    return this.mirrors.get(apiUid) ?? (apiUid as PodUid);
  }

  watchPods(listener: (change: PodViewChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ledger(): undefined {
    return undefined;
  }

  set(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    const type = this.#pods.has(uid) ? "MODIFIED" : "ADDED";
    this.#pods.set(uid, pod);
    for (const listener of this.#listeners) listener({ type, object: pod });
  }
}

/** Sees pods as the agent does, through its observer. */
export function viewsOf(runtime: RuntimeService): RuntimeViews {
  const observer = new PodObserver({ runtime, clock: systemClock });
  return {
    latest: (uid: PodUid): ObservedPod | undefined => observer.latest(uid),
    look: (uid, signal) => observer.look(uid, signal),
  };
}

export const allOn: ApiSettings = {
  enableDebuggingHandlers: true,
  enableSystemLogHandler: true,
  enableSystemLogQuery: false,
  enableProfilingHandler: true,
  enableDebugFlagsHandler: true,
  checkpoint: true,
  flagz: false,
  statusz: false,
  rootDir: "/nonexistent",
};

/** Ports with nothing behind them but what is given. */
export function apiPorts(given: Partial<ApiPorts> & Pick<ApiPorts, "runtime">): ApiPorts {
  return {
    views: new FakeViews(),
    runtimeViews: viewsOf(given.runtime),
    health: new HealthRegistry(systemClock),
    onHealthAsked: () => {},
    dashboard: {
      answer: async ({ path, response }) => {
        response.writeHead(path === "" ? 200 : 404).end();
      },
    },
    figures: [],
    containerLogs: { type: "disabled", path: "/containerLogs/", reason: "not part of this test" },
    configz: () => ({ kubeletconfig: { port: 10250 } }),
    flags: {},
    commandLine: ["nodelet", "--x=y"],
    facts: { version: "0.0.0", kubeletVersion: "v1.34.0", startedAt: 0 },
    logVerbosity: { verbosity: 2 },
    clock: systemClock,
    log: silentLogger,
    ...given,
  };
}

/** A server on a free port of this machine, until it is disposed of. */
export class TestServer implements AsyncDisposable {
  readonly #scope = new TaskScope();
  readonly server: NodeServer;

  readonly #send: typeof request;

  private constructor(server: NodeServer, send: typeof request) {
    this.server = server;
    this.#send = send;
  }

  static async start(
    mounts: readonly ApiMount[],
    ports: Partial<DispatchPorts> = {},
    tls?: ServingTls,
  ): Promise<TestServer> {
    const server = new NodeServer({ host: "127.0.0.1", port: 0 }, tls, {
      mounts,
      gate: openGate,
      clock: systemClock,
      log: silentLogger,
      onRequest: () => () => {},
      ...ports,
    });
    await server.listen();
    const started = new TestServer(server, tls === undefined ? request : requestTls);
    started.#scope.spawn("server", (signal) => server.serve(signal));
    return started;
  }

  get port(): number {
    return this.server.port;
  }

  /** The whole answer to one request. */
  async ask(path: string, options: AskOptions = {}): Promise<Answer> {
    const { method = "GET", headers = {}, body = "", client = {} } = options;
    const tls = { rejectUnauthorized: false, ...client };
    const sent = this.#send({ host: "127.0.0.1", port: this.port, path, method, headers, agent: false, ...tls });
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    return { status: response.statusCode ?? 0, headers: response.headers, text: bytes.toString(), bytes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** How the client does TLS: with which certificate, up to which version. */
  readonly client?: ConnectionOptions;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  readonly bytes: Buffer;
}

/** Of an agent that has not reached its runtime yet. */
export const noStatistics = new LazyStatistics(
  new TaskScope(),
  () => {
    throw new Error("there is no runtime");
  },
  () => false,
);
