import { chmod, lstat, unlink } from "node:fs/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, loadedPart, never, onAbort, withDeadline } from "../../ground/base/index.ts";
import type { Dispatcher } from "./api/dispatch.ts";
import { takeDoctorSummary } from "./doctor-summary.ts";
import type { HealthRegistry } from "./health.ts";
import { healthzHandler } from "./healthz.ts";
import { getOnly, type Handler, httpServer, listen, sendJson, sendText, serve } from "./http.ts";
import type { LocalPodPorts } from "./local-pods.ts";
import { manifestPlanRoute } from "./manifest-plan-route.ts";
import { answerPlan } from "./plan-answer.ts";
import { findPod, type PodLookup, podList } from "./pod-list.ts";
import { streamPods } from "./pod-watch.ts";
import type {
  DryRun,
  DryRuns,
  LocalViews,
  LogVerbosity,
  LookAtPulls,
  PlanManifest,
  Plans,
  RolloutDesk,
  SelfViews,
  ShownPull,
} from "./ports.ts";
import { rolloutRoutes } from "./rollout-routes.ts";
import { setVerbosity } from "./verbosity.ts";
import { waitingPods } from "./waiting.ts";

export interface LocalSocketPorts extends LocalPodPorts {
  readonly health: HealthRegistry;
  /** The body of /configz. */
  readonly configz: () => unknown;
  readonly dryRuns: DryRuns;
  readonly planManifest: PlanManifest;
  readonly logVerbosity: LogVerbosity;
  readonly plans: Plans;
  readonly pulls: LookAtPulls;
  readonly self: SelfViews;
  /** Who has which CPUs and memory of this machine. */
  readonly resources: () => Promise<object>;
  /** Undefined: nothing can be tried here. */
  readonly rollout?: RolloutDesk | undefined;
}

/** For the commands of this machine's root (`nodelet why`, `nodelet up`): HTTP on a unix socket. */
export class LocalSocketServer {
  readonly #path: string;
  readonly #server: Server;
  readonly #ports: LocalSocketPorts;
  #loading: Promise<Dispatcher> | undefined;
  #pods: Dispatcher | undefined;

  constructor(path: string, ports: LocalSocketPorts) {
    this.#path = path;
    this.#ports = ports;
    const otherwise: Handler = async (request, _url, response) => (await this.#loadPods()).request(request, response);
    this.#server = httpServer(
      routes(ports),
      (error, where) => ports.log.error("Request failed", error, { path: where }),
      otherwise,
    );
    this.#server.on("upgrade", (request, socket, head) => {
      socket.on("error", () => socket.destroy());
      void this.#upgrade(request, socket, head);
    });
  }

  /** Most agents are never asked for logs or exec here; until they are, the code for it is not loaded. */
  #loadPods(): Promise<Dispatcher> {
    this.#loading ??= loadedPart(import("./local-pods.ts")).then(({ localPods }) => {
      this.#pods = localPods(this.#ports);
      return this.#pods;
    });
    return this.#loading;
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    try {
      const pods = await this.#loadPods();
      const isServing = this.#server.listening && !pods.isAnswering(request);
      if (isServing && pods.mayUpgrade(request)) pods.upgrade(request, socket, head);
      else socket.destroy();
    } catch (error) {
      this.#ports.log.error("Request failed", error, { path: request.url });
      socket.destroy();
    }
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
    // The server does not count what was upgraded as its own, but would wait for it to end.
    using _ = onAbort(signal, () => this.#pods?.cutUpgraded());
    try {
      await serve(this.#server, signal);
    } finally {
      await this.#pods?.settled();
    }
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
    const ref = url.searchParams.get("pod");
    if (isTrue(url.searchParams.get("watch"))) streamPods(views, response);
    else if (ref === null) sendJson(response, podList(views.pods()));
    else withPod(views, ref, response, ({ pod }) => sendJson(response, podList([pod])));
  };
  const ledger: Handler = async (_request, url, response) => {
    const pulls = await lookAtPulls(ports);
    withPod(views, url.searchParams.get("pod") ?? "", response, ({ pod: { metadata, status }, uid }) => {
      const pod = { ...metadata, phase: status?.phase };
      const own = pulls.filter(({ podUids }) => podUids.includes(uid));
      sendJson(response, { pod, ledger: views.ledger(uid) ?? noLedger, pulls: own, now: clock.now() });
    });
  };
  const waiting: Handler = async (_request, _url, response) => {
    const pulls = await lookAtPulls(ports);
    sendJson(response, { pods: waitingPods(views, pulls), now: clock.now() });
  };
  const healthz = healthzHandler(ports.health, "reasons");
  return new Map<string, Handler>([
    ["/pods", getOnly(pods)],
    ["/ledger", getOnly(ledger)],
    ["/waiting", getOnly(waiting)],
    ["/pulls", getOnly(async (_request, _url, response) => sendJson(response, { pulls: await lookAtPulls(ports) }))],
    ["/healthz", getOnly((_request, url, response) => healthz(url.searchParams, response))],
    ["/configz", getOnly((_request, _url, response) => sendJson(response, ports.configz()))],
    ["/config", getOnly(async (_request, _url, response) => sendJson(response, await ports.self.config()))],
    ["/self", getOnly((_request, _url, response) => sendJson(response, ports.self.state()))],
    ["/doctor", (request, _url, response) => takeDoctorSummary(request, response, ports.self.examined)],
    ["/resources", getOnly(async (_request, _url, response) => sendJson(response, await ports.resources()))],
    ["/plans/shutdown", getOnly((_request, _url, response) => sendPlan(response, ports.plans.shutdown()))],
    ...[...ports.dryRuns].map(([name, run]) => [`/plans/${name}`, getOnly(dryRun(run, clock))] as const),
    ["/plans/apply", manifestPlanRoute(ports.planManifest, clock)],
    ...rolloutRoutes(ports.rollout, ports.log),
    ["/debug/flags/v", (request, _url, response) => setVerbosity(request, response, ports.logVerbosity, ports.log)],
  ]);
}

/** Answers about the pod that is meant; says so when there is none, or more than one. */
function withPod(
  views: LocalViews,
  ref: string,
  response: ServerResponse,
  answer: (lookup: PodLookup & { found: "one" }) => void,
): void {
  const lookup = findPod(views.pods(), ref);
  switch (lookup.found) {
    case "none":
      sendText(response, 404, `there is no pod ${JSON.stringify(ref)} on this node\n`);
      break;
    case "several": {
      const names = lookup.names.join(", ");
      sendText(response, 409, `several pods have the name ${JSON.stringify(ref)}: ${names}; say which\n`);
      break;
    }
    case "one":
      answer(lookup);
  }
}

/** Whoever asks why a pod waits is told without figures when the runtime does not answer. */
const pullsWithinMs = 2_000;

async function lookAtPulls({ pulls, clock }: LocalSocketPorts): Promise<readonly ShownPull[]> {
  const late = (): Error => new Error("the runtime does not say how far pulls are");
  try {
    return await withDeadline(clock, pullsWithinMs, late, never, (signal) => pulls(signal));
  } catch {
    return [];
  }
}

function sendPlan(response: ServerResponse, plan: object | undefined): void {
  if (plan === undefined) sendText(response, 404, "the node is not configured to do this\n");
  else sendJson(response, plan);
}

function dryRun(run: DryRun, clock: Clock): Handler {
  return (_request, url, response) => answerPlan(response, clock, (signal) => run(url.searchParams, signal));
}

const noLedger = { entries: [], dropped: 0, blocker: undefined };

function isTrue(value: string | null): boolean {
  return value === "1" || value === "true";
}
