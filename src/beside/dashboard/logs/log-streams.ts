import type { ServerResponse } from "node:http";
import { isAbort, messageOf, type Timer } from "../../../ground/base/index.ts";
import { containersOf, type IdentifiedPod, type Pod } from "../../../ground/model/index.ts";
import { neverKept, safetyHeaders } from "../door/headers.ts";
import type { DashboardPorts } from "../ports.ts";
import { LineCutter } from "./line-cutter.ts";

type LogPorts = Pick<DashboardPorts, "copyLog" | "clock">;

const mostStreams = 8;
const mostTailLines = 5_000;
/** Said by a log that says nothing, so that both ends know of each other. */
const signOfLifeEveryMs = 15_000;

/**
 * Logs of a pod's containers as pages want them: one line of text each, `NUMBER TIME TEXT`, where the number is that of
 * the container among those asked for. A line that begins with `!` is the agent's own: why a log can't be read.
 */
export class LogStreams {
  readonly #ports: LogPorts;
  #open = 0;

  constructor(ports: LogPorts) {
    this.#ports = ports;
  }

  get isFull(): boolean {
    return this.#open >= mostStreams;
  }

  async send(pod: Pod, query: URLSearchParams, response: ServerResponse, signal: AbortSignal): Promise<void> {
    this.#open++;
    try {
      if (query.has("download")) await this.#download(pod, query, response, signal);
      else await this.#show(pod, query, response, signal);
    } catch (error) {
      if (!isAbort(error, signal)) throw error;
    } finally {
      this.#open--;
    }
  }

  async #show(pod: Pod, query: URLSearchParams, response: ServerResponse, signal: AbortSignal): Promise<void> {
    response.writeHead(200, {
      ...safetyHeaders,
      "Content-Type": "text/plain; charset=utf-8",
      "Cache-Control": neverKept,
    });
    response.flushHeaders();
    const names = wantedContainers(pod, query);
    const asked = Number(query.get("tail") ?? 1_000);
    const tailLines = Math.min(Math.max(Number.isInteger(asked) ? asked : 1_000, 0), mostTailLines);
    using _ = this.#signsOfLife(response);
    const copies = names.map(async (container, index) => {
      const cutter = new LineCutter(`${index} `);
      const [previous, follow] = [query.has("previous"), query.has("follow")];
      const request = { pod, container, previous, follow, tailLines, hasTimes: true };
      try {
        await this.#ports.copyLog(request, (bytes) => write(response, cutter.push(bytes)), signal);
        await write(response, cutter.flush());
      } catch (error) {
        if (isAbort(error, signal)) return;
        await write(response, Buffer.from(`! ${container}: ${messageOf(error).replaceAll("\n", " ")}\n`));
      }
    });
    for (const copy of copies) await copy;
    response.end();
  }

  /** As the container wrote it, whole. */
  async #download(pod: Pod, query: URLSearchParams, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const [container = ""] = wantedContainers(pod, query);
    const file = `${pod.metadata?.name ?? "pod"}-${container}.log`.replace(/[^\w.-]/g, "_");
    const begin = (): void => {
      if (response.headersSent) return;
      response.writeHead(200, {
        ...safetyHeaders,
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Disposition": `attachment; filename="${file}"`,
        "Cache-Control": neverKept,
      });
    };
    const previous = query.has("previous");
    const request = { pod, container, previous, follow: false, tailLines: undefined, hasTimes: false };
    await this.#ports.copyLog(
      request,
      async (bytes) => {
        begin();
        await write(response, Buffer.from(bytes));
      },
      signal,
    );
    begin();
    response.end();
  }

  #signsOfLife(response: ServerResponse): Disposable {
    const { clock } = this.#ports;
    let timer: Timer;
    const again = (): void => {
      timer = clock.after(signOfLifeEveryMs, () => {
        if (response.writableLength === 0) response.write("\n");
        again();
      });
    };
    again();
    return { [Symbol.dispose]: () => timer.cancel() };
  }
}

/** Those of the pod that are asked for; none named: all that can have a log. */
function wantedContainers(pod: Pod, query: URLSearchParams): readonly string[] {
  const all = containersOf(pod as IdentifiedPod).map(({ container }) => container.name);
  const named = query.getAll("container");
  return named.length === 0 ? all : all.filter((name) => named.includes(name));
}

/** Resolves when the bytes have left our hands, or nobody is there to take them. */
async function write(response: ServerResponse, bytes: Buffer): Promise<void> {
  if (bytes.length === 0 || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off("close", done);
      resolve();
    };
    response.once("close", done);
    response.write(bytes, done);
  });
}
