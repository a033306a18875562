import type { Server } from "node:http";
import type { Logger } from "../base/index.ts";
import type { HealthRegistry } from "./health.ts";
import { healthzHandler } from "./healthz.ts";
import { getOnly, type Handler, httpServer, listen, sendJson, serve } from "./http.ts";
import { podList } from "./pod-views.ts";
import type { LocalViews } from "./ports.ts";

/** The unauthenticated port (readOnlyPort): shows the pods, changes nothing. */
export class ReadOnlyServer {
  readonly #where: { readonly host: string; readonly port: number };
  readonly #server: Server;

  constructor(
    where: { readonly host: string; readonly port: number },
    { views, health, log }: { views: Pick<LocalViews, "pods">; health: HealthRegistry; log: Logger },
  ) {
    this.#where = where;
    const routes = new Map<string, Handler>([
      ["/pods", getOnly((_request, _url, response) => sendJson(response, podList(views.pods())))],
      ["/healthz", healthzHandler(health, "names")],
    ]);
    this.#server = httpServer(routes, (error, path) => log.error("Request failed", error, { path }));
  }

  async listen(): Promise<void> {
    try {
      await listen(this.#server, this.#where);
    } catch (error) {
      throw new Error(`Failed to listen and serve on the read-only port ${this.#where.port}`, { cause: error });
    }
  }

  async serve(signal: AbortSignal): Promise<void> {
    await serve(this.#server, signal);
  }
}
