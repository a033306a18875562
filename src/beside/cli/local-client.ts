import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { createInterface } from "node:readline";
import { hasCode } from "../../ground/base/index.ts";
import type { Pod, PodViewChange } from "../../ground/model/index.ts";
import { SpdyConnection } from "../../ground/spdy/index.ts";
import type { RolloutAnswer } from "./config-trial-text.ts";
import type { LedgerAnswer } from "./ledger-text.ts";
import type { PullAnswer } from "./pull-text.ts";
import type { ResourcesAnswer } from "./resources-text.ts";
import type { ShutdownPlanAnswer } from "./shutdown-text.ts";
import type { UsageAnswer } from "./top-text.ts";
import type { WaitingAnswer } from "./waiting-text.ts";

/** The agent answered, but not with what was asked for. */
export class AgentAnswerError extends Error {
  override readonly name = "AgentAnswerError";
  readonly status: number;

  constructor(path: string, status: number, body: string) {
    super(
      status >= 400 && status < 500 && body.trim() !== ""
        ? body.trim()
        : // What was asked in detail says nothing to a person.
          `The agent answered ${path.replace(/\?.*$/s, "")} with ${status}: ${body.trim()}`,
    );
    this.status = status;
  }
}

/** The agent holds its socket, but says nothing: it hangs, or what it has to ask for the answer does. */
class AgentSilentError extends Error {
  override readonly name = "AgentSilentError";

  constructor(socketPath: string, silentMs: number) {
    super(
      `the agent at ${socketPath} has not answered for ${silentMs / 1000} s; it or its container runtime may hang: "nodelet doctor" and its log say more`,
    );
  }
}

/** The agent was there, and is gone. */
export class AgentCutError extends Error {
  override readonly name = "AgentCutError";

  constructor(cause: unknown) {
    super("the connection to the agent was cut: it has ended, or was restarted", { cause });
  }
}

/** Long for a machine that is busy, short for a script that would wait for ever. */
const usualSilentMs = 20_000;

/** A stream may be silent for as long as it wants, once it has begun. */
type AnswerKind = "answer" | "stream";

/** Talks to the agent of this machine through the unix socket in its root directory. */
export class LocalClient {
  readonly #socketPath: string;
  readonly #silentMs: number;

  constructor(socketPath: string, silentMs = usualSilentMs) {
    this.#socketPath = socketPath;
    this.#silentMs = silentMs;
  }

  /** The agent's own account of its health, one check per line; `healthy` is its verdict. */
  async health(signal: AbortSignal): Promise<{ readonly healthy: boolean; readonly report: string }> {
    const response = await this.#get("/healthz?verbose", signal, "answer");
    return { healthy: response.statusCode === 200, report: await readText(response, signal) };
  }

  async pods(signal: AbortSignal): Promise<readonly Pod[]> {
    const list: { readonly items: readonly Pod[] | null } = JSON.parse(await this.#text("/pods", signal));
    return list.items ?? [];
  }

  /** One pod, by name, namespace/name or uid. */
  async pod(ref: string, signal: AbortSignal): Promise<Pod> {
    const list: { readonly items: readonly [Pod] } = JSON.parse(
      await this.#text(`/pods?pod=${encodeURIComponent(ref)}`, signal),
    );
    return list.items[0];
  }

  /** Everything that waits on this node, the longest first. */
  async waiting(signal: AbortSignal): Promise<WaitingAnswer> {
    return JSON.parse(await this.#text("/waiting", signal));
  }

  /** Image pulls under way or waiting for their turn. */
  async pulls(signal: AbortSignal): Promise<readonly PullAnswer[]> {
    const answer: { readonly pulls: readonly PullAnswer[] } = JSON.parse(await this.#text("/pulls", signal));
    return answer.pulls;
  }

  /** What the node and its pods use. */
  async usage(signal: AbortSignal): Promise<UsageAnswer> {
    return JSON.parse(await this.#text("/stats/summary?only_cpu_and_memory=true&now=true", signal));
  }

  /** What a container has written, as the query wants it. */
  async *logs(where: InContainer, query: URLSearchParams, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const path = `/containerLogs/${pathOf(where)}?${query}`;
    const response = await this.#get(path, signal, "stream");
    if (response.statusCode !== 200) {
      throw new AgentAnswerError(path, response.statusCode ?? 0, await readText(response, signal));
    }
    try {
      yield* response;
    } catch (error) {
      throw cutOff(error, signal);
    }
  }

  /** Opens the streams of a command in a container. */
  async exec(where: InContainer, query: URLSearchParams, signal: AbortSignal): Promise<SpdyConnection> {
    const path = `/exec/${pathOf(where)}?${query}`;
    const headers = { Connection: "Upgrade", Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io" };
    const options = { ...this.#options(path, signal), method: "POST", headers };
    return await new Promise((resolve, reject) => {
      const asked = request(options)
        .on("upgrade", ({ headers: agreed }, socket, head) => {
          // What runs in the container may be silent for as long as it wants.
          socket.setTimeout(0);
          resolve(new SpdyConnection(socket, head, String(agreed["x-stream-protocol-version"] ?? "")));
        })
        .on("response", (response) => {
          readText(response, signal).then(
            (text) => reject(new AgentAnswerError(path, response.statusCode ?? 0, text)),
            (error: unknown) => reject(error),
          );
        })
        .on("timeout", () => asked.destroy(this.#silent()))
        .on("error", (error) => reject(unanswered(error, signal)))
        .end();
    });
  }

  /** The record of what happened to one pod, by name, namespace/name or uid. */
  async ledger(pod: string, signal: AbortSignal): Promise<LedgerAnswer> {
    return JSON.parse(await this.#text(`/ledger?pod=${encodeURIComponent(pod)}`, signal));
  }

  /** What would happen if the machine were turned off now; undefined: the node is configured not to care. */
  async shutdownPlan(signal: AbortSignal): Promise<ShutdownPlanAnswer | undefined> {
    const path = "/plans/shutdown";
    try {
      return JSON.parse(await this.#text(path, signal));
    } catch (error) {
      if (error instanceof AgentAnswerError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Who has which CPUs and memory of this machine. */
  async resources(signal: AbortSignal): Promise<ResourcesAnswer> {
    return JSON.parse(await this.#text("/resources", signal));
  }

  /** What the agent says about its configurations. */
  async rollout(signal: AbortSignal): Promise<RolloutAnswer> {
    return JSON.parse(await this.#text("/rollout", signal));
  }

  /** Asks for something to be done; a refusal is an error in the agent's words. */
  async post(path: string, body: string | Uint8Array, signal: AbortSignal): Promise<string> {
    const response = await this.#ask({ ...this.#options(path, signal), method: "POST" }, "answer", body);
    const text = await readText(response, signal);
    if (response.statusCode === 409) throw new Error(text.trim());
    if (response.statusCode !== 200) throw new AgentAnswerError(path, response.statusCode ?? 0, text);
    return text;
  }

  /** What the agent would do: the answer of one of its dry runs. */
  async dryRun<Answer>(name: string, question: URLSearchParams, signal: AbortSignal): Promise<Answer> {
    return JSON.parse(await this.#text(`/plans/${name}?${question}`, signal));
  }

  /** All pods, then every change as it happens, until the signal aborts or the agent ends. */
  async *watchPods(signal: AbortSignal): AsyncGenerator<PodViewChange, void, undefined> {
    const response = await this.#get("/pods?watch=1", signal, "stream");
    if (response.statusCode !== 200) {
      throw new AgentAnswerError("/pods?watch=1", response.statusCode ?? 0, await readText(response, signal));
    }
    try {
      for await (const line of createInterface({ input: response })) {
        if (line !== "") yield JSON.parse(line);
      }
    } catch (error) {
      throw cutOff(error, signal);
    }
  }

  async #text(path: string, signal: AbortSignal): Promise<string> {
    const response = await this.#get(path, signal, "answer");
    const body = await readText(response, signal);
    if (response.statusCode !== 200) throw new AgentAnswerError(path, response.statusCode ?? 0, body);
    return body;
  }

  #get(path: string, signal: AbortSignal, kind: AnswerKind): Promise<IncomingMessage> {
    return this.#ask(this.#options(path, signal), kind);
  }

  #ask(options: AgentRequest, kind: AnswerKind, body?: string | Uint8Array): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      let answer: IncomingMessage | undefined;
      const asked = request(options)
        .on("response", (response) => {
          answer = response;
          if (kind === "stream") asked.setTimeout(0);
          resolve(response);
        })
        // Whoever reads an answer that has begun hears of it there.
        .on("timeout", () => void (answer ?? asked).destroy(this.#silent()))
        .on("error", (error) => reject(unanswered(error, options.signal)))
        .end(body);
    });
  }

  #options(path: string, signal: AbortSignal): AgentRequest {
    return { socketPath: this.#socketPath, path, signal, agent: false, timeout: this.#silentMs };
  }

  #silent(): AgentSilentError {
    return new AgentSilentError(this.#socketPath, this.#silentMs);
  }
}

interface AgentRequest extends RequestOptions {
  readonly signal: AbortSignal;
}

/** What went wrong before an answer; an agent that ends with a question before it is said to have ended. */
function unanswered(error: Error, signal: AbortSignal): Error {
  return hasCode(error, "ECONNRESET", "EPIPE") ? cutOff(error, signal) : error;
}

/** What went wrong in the middle of an answer. Node reports a stream that we aborted as one that was cut off. */
function cutOff(error: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason;
  if (error instanceof AgentSilentError) return error;
  return new AgentCutError(error);
}

/** A container as the agent's paths name it. */
export interface InContainer {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

function pathOf({ namespace, pod, container }: InContainer): string {
  return [namespace, pod, container].map(encodeURIComponent).join("/");
}

async function readText(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  let text = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) text += chunk;
  } catch (error) {
    throw cutOff(error, signal);
  }
  return text;
}
