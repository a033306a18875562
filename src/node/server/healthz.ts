import type { Server, ServerResponse } from "node:http";
import { type Clock, isAbort, type Logger, messageOf } from "../../ground/base/index.ts";
import type { HealthEntry, HealthRegistry } from "./health.ts";
import { type Handler, httpServer, listen, sendText, serve } from "./http.ts";

const rebindMs = 5_000;

export interface HealthzPorts {
  readonly health: HealthRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Plain HTTP on healthzPort. It says that the process answers; the other checks are listed by `?verbose` but
 * do not change the answer, since supervisors restart the agent by it. A port that cannot be had is tried again.
 */
export class HealthzServer {
  readonly #where: { readonly host: string; readonly port: number };
  readonly #ports: HealthzPorts;

  constructor(where: { readonly host: string; readonly port: number }, ports: HealthzPorts) {
    this.#where = where;
    this.#ports = ports;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, health } = this.#ports;
    while (!signal.aborted) {
      const server = this.#server();
      try {
        await listen(server, this.#where);
        health.report("healthz", { state: "ok" });
        log.info("Started healthz server", this.#where);
        await serve(server, signal);
      } catch (error) {
        if (isAbort(error, signal)) return;
        health.report("healthz", { state: "waiting", reason: `its port can't be had: ${messageOf(error)}` });
        log.error("Failed to start healthz server", error, { ...this.#where, retryInMs: rebindMs });
        await clock.sleep(rebindMs, signal);
      }
    }
  }

  #server(): Server {
    const { health, log } = this.#ports;
    const routes = new Map<string, Handler>([
      [
        "/healthz",
        (_request, url, response) => {
          const wanted = url.searchParams.has("verbose");
          sendText(response, 200, wanted ? describeHealth(withPing(health.read()), "reasons") : "ok");
        },
      ],
      ["/healthz/ping", (_request, _url, response) => sendText(response, 200, "ok")],
    ]);
    return httpServer(routes, (error, path) => log.error("Request failed", error, { path }));
  }
}

export type HealthzHandler = (query: URLSearchParams, response: ServerResponse) => void;

/** What a reader may learn: all, or only which checks fail (for the port that anybody may ask). */
export type HealthDetail = "reasons" | "names";

/** `/healthz` where every check counts: 500 when one has failed. Waiting is not failing. */
export function healthzHandler(health: HealthRegistry, detail: HealthDetail): HealthzHandler {
  return (query, response) => {
    const excluded = new Set(query.getAll("exclude"));
    const entries = withPing(health.read());
    const failed = entries.some(({ name, health: { state } }) => state === "failed" && !excluded.has(name));
    const asked = query.has("verbose");
    const text = failed || asked ? describeHealth(entries, detail, excluded) : "ok";
    sendText(response, failed ? 500 : 200, text);
  };
}

/** One line per check, in the form `kubectl get --raw /healthz?verbose` made familiar, with the age of the last proof. */
export function describeHealth(
  entries: readonly HealthEntry[],
  detail: HealthDetail,
  excluded: ReadonlySet<string> = new Set(),
): string {
  const line = detail === "reasons" ? lineWithReason : lineWithoutReason;
  const lines = entries.map((entry) => (excluded.has(entry.name) ? `[+]${entry.name} excluded: ok` : line(entry)));
  const unknown = [...excluded].filter((name) => !entries.some((entry) => entry.name === name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(", ");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  const failed = entries.some(({ name, health }) => health.state === "failed" && !excluded.has(name));
  return `${lines.join("\n")}\nhealthz check ${failed ? "failed" : "passed"}\n`;
}

function lineWithoutReason({ name, health }: HealthEntry): string {
  return health.state === "failed" ? `[-]${name} failed: reason withheld` : `[+]${name} ok`;
}

function lineWithReason({ name, health, sinceMs, provenMs }: HealthEntry): string {
  switch (health.state) {
    case "ok": {
      const proof = provenMs === undefined ? [] : [`proven ${seconds(provenMs)} ago`];
      const notes = [...proof, ...(health.note === undefined ? [] : [health.note])];
      return `[+]${name} ok${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`;
    }
    case "waiting":
      return `[~]${name} waiting for ${seconds(sinceMs)}: ${health.reason}`;
    case "failed":
      return `[-]${name} failed ${seconds(sinceMs)} ago: ${health.reason}`;
  }
}

function seconds(ms: number): string {
  return `${Math.floor(ms / 1000)}s`;
}

/** That this code runs is the proof of `ping`. */
export function withPing(entries: readonly HealthEntry[]): readonly HealthEntry[] {
  return [{ name: "ping", health: { state: "ok" }, sinceMs: 0, provenMs: undefined }, ...entries];
}
