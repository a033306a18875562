import { type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import type { Pod, PodViewChange } from "../../ground/model/index.ts";
import type { LedgerAnswer } from "./ledger-text.ts";
import type { ResourcesAnswer } from "./resources-text.ts";
import type { ShutdownPlanAnswer } from "./shutdown-text.ts";

/** The agent answered, but not with what was asked for. */
export class AgentAnswerError extends Error {
  override readonly name = "AgentAnswerError";
  readonly status: number;

  constructor(path: string, status: number, body: string) {
    super(`The agent answered ${path} with ${status}: ${body.trim()}`);
    this.status = status;
  }
}

/** Talks to the agent of this machine through the unix socket in its root directory. */
export class LocalClient {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** The agent's own account of its health, one check per line; `healthy` is its verdict. */
  async health(signal: AbortSignal): Promise<{ readonly healthy: boolean; readonly report: string }> {
    const response = await this.#get("/healthz?verbose", signal);
    return { healthy: response.statusCode === 200, report: await readText(response) };
  }

  async pods(signal: AbortSignal): Promise<readonly Pod[]> {
    const list: { readonly items: readonly Pod[] | null } = JSON.parse(await this.#text("/pods", signal));
    return list.items ?? [];
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

  /** What the agent would do: the answer of one of its dry runs. */
  async dryRun<Answer>(name: string, question: URLSearchParams, signal: AbortSignal): Promise<Answer> {
    return JSON.parse(await this.#text(`/plans/${name}?${question}`, signal));
  }

  /** All pods, then every change as it happens, until the signal aborts or the agent ends. */
  async *watchPods(signal: AbortSignal): AsyncGenerator<PodViewChange, void, undefined> {
    const response = await this.#get("/pods?watch=1", signal);
    if (response.statusCode !== 200) {
      throw new AgentAnswerError("/pods?watch=1", response.statusCode ?? 0, await readText(response));
    }
    try {
      for await (const line of createInterface({ input: response })) {
        if (line !== "") yield JSON.parse(line);
      }
    } catch (error) {
      // Node reports a stream we aborted as one that was cut off.
      signal.throwIfAborted();
      throw error;
    }
  }

  async #text(path: string, signal: AbortSignal): Promise<string> {
    const response = await this.#get(path, signal);
    const body = await readText(response);
    if (response.statusCode !== 200) throw new AgentAnswerError(path, response.statusCode ?? 0, body);
    return body;
  }

  #get(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = { socketPath: this.#socketPath, path, signal, agent: false };
      request(options, resolve).on("error", reject).end();
    });
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}
