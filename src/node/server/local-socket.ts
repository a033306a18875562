import { chmod, lstat, unlink } from "node:fs/promises";
import type { Server, ServerResponse } from "node:http";
import { connect } from "node:net";
import { type Clock, type Logger, messageOf, never, withDeadline } from "../../ground/base/index.ts";
import type { HealthRegistry } from "./health.ts";
import { healthzHandler } from "./healthz.ts";
import { getOnly, type Handler, httpServer, listen, sendJson, sendText, serve } from "./http.ts";
import { findPod, podList } from "./pod-views.ts";
import { streamPods } from "./pod-watch.ts";
import type { DryRun, DryRuns, LocalViews, LogVerbosity, Plans } from "./ports.ts";
import { setVerbosity } from "./verbosity.ts";

export interface LocalSocketPorts {
  readonly views: LocalViews;
  readonly health: HealthRegistry;
  /** The body of /configz. */
  readonly configz: () => unknown;
  readonly dryRuns: DryRuns;
  readonly logVerbosity: LogVerbosity;
  readonly plans: Plans;
  /** Who has which CPUs and memory of this machine. */
  readonly resources: () => Promise<object>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** For the commands of this machine's root (`nodelet why`, `nodelet up`): HTTP on a unix socket. */
export class LocalSocketServer {
  readonly #path: string;
  readonly #server: Server;

  constructor(path: string, ports: LocalSocketPorts) {
    this.#path = path;
    this.#server = httpServer(routes(ports), (error, where) =>
      ports.log.error("Request failed", error, { path: where }),
    );
  }

  /** Takes the place of a socket that a killed agent left behind; one that still answers is an error. */
  async listen(): Promise<void> {
    if (Buffer.byteLength(this.#path) > longestSocketPath) {
      throw new Error(
        `The socket path "${this.#path}" is longer than the ${longestSocketPath} bytes Linux allows; use a shorter --root-dir`,
      );
    }
    await removeStaleSocket(this.#path);
    try {
      await listen(this.#server, { path: this.#path });
      await chmod(this.#path, 0o600);
    } catch (error) {
      throw new Error(`Cannot listen on "${this.#path}"`, { cause: error });
    }
  }

  /** Serves until aborted; the socket file goes with it. */
  async serve(signal: AbortSignal): Promise<void> {
    await serve(this.#server, signal);
  }
}

const longestSocketPath = 107;

async function removeStaleSocket(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats === undefined) return;
  if (!stats.isSocket()) throw new Error(`"${path}" exists and is not a socket; move it away`);
  if (await answers(path)) {
    throw new Error(`Another agent listens on "${path}"; stop it first, or give this one its own --root-dir`);
  }
  await unlink(path);
}

async function answers(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function routes(ports: LocalSocketPorts): ReadonlyMap<string, Handler> {
  const { views, clock } = ports;
  const pods: Handler = (_request, url, response) => {
    if (isTrue(url.searchParams.get("watch"))) streamPods(views, response);
    else sendJson(response, podList(views.pods()));
  };
  const ledger: Handler = (_request, url, response) => {
    const ref = url.searchParams.get("pod") ?? "";
    const lookup = findPod(views.pods(), ref);
    if (lookup.found === "none") {
      sendText(response, 404, `there is no pod ${JSON.stringify(ref)} on this node\n`);
      return;
    }
    if (lookup.found === "several") {
      const names = lookup.names.join(", ");
      sendText(response, 409, `several pods have the name ${JSON.stringify(ref)}: ${names}; say which\n`);
      return;
    }
    const pod = { ...lookup.pod.metadata, phase: lookup.pod.status?.phase };
    sendJson(response, { pod, ledger: views.ledger(lookup.uid) ?? noLedger, now: clock.now() });
  };
  const healthz = healthzHandler(ports.health, "reasons");
  return new Map<string, Handler>([
    ["/pods", getOnly(pods)],
    ["/ledger", getOnly(ledger)],
    ["/healthz", getOnly((_request, url, response) => healthz(url.searchParams, response))],
    ["/configz", getOnly((_request, _url, response) => sendJson(response, ports.configz()))],
    ["/resources", getOnly(async (_request, _url, response) => sendJson(response, await ports.resources()))],
    ["/plans/shutdown", getOnly((_request, _url, response) => sendPlan(response, ports.plans.shutdown()))],
    ...[...ports.dryRuns].map(([name, run]) => [`/plans/${name}`, getOnly(dryRun(run, clock))] as const),
    ["/debug/flags/v", (request, _url, response) => setVerbosity(request, response, ports.logVerbosity, ports.log)],
  ]);
}

function sendPlan(response: ServerResponse, plan: object | undefined): void {
  if (plan === undefined) sendText(response, 404, "the node is not configured to do this\n");
  else sendJson(response, plan);
}

/** A runtime that does not answer must not keep a person waiting for ever. */
const dryRunWithinMs = 30_000;

function dryRun(run: DryRun, clock: Clock): Handler {
  return async (_request, url, response) => {
    const late = (): Error => new Error(`no answer within ${dryRunWithinMs / 1000} s`);
    try {
      const answer = await withDeadline(clock, dryRunWithinMs, late, never, (signal) => run(url.searchParams, signal));
      sendJson(response, answer);
    } catch (error) {
      const isQuestion = error instanceof Error && error.name === "DryRunQuestionError";
      sendText(response, isQuestion ? 400 : 503, `${messageOf(error)}\n`);
    }
  };
}

const noLedger = { entries: [], dropped: 0, blocker: undefined };

function isTrue(value: string | null): boolean {
  return value === "1" || value === "true";
}
