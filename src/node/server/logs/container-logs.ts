import type { ServerResponse } from "node:http";
import { isAbort, messageOf } from "../../../ground/base/index.ts";
import { AnswerError } from "../api/answer-error.ts";
import { podNamed } from "../api/pod-lookup.ts";
import type { ApiCall, ApiMount } from "../api/router.ts";
import { untilClientLeaves, writePiece } from "../http.ts";
import { copyLog, type LogSourcePorts } from "./copy-log.ts";
import { logOptions } from "./log-options.ts";

export interface ContainerLogPorts extends LogSourcePorts {
  /** The gate PodLogsQuerySplitStreams. */
  readonly splitStreams: boolean;
}

/** /containerLogs: what a container has written, and on request what it goes on to write. */
export function containerLogsService(ports: ContainerLogPorts): ApiMount {
  return {
    type: "service",
    path: "/containerLogs",
    routes: [{ methods: ["GET"], pattern: "{namespace}/{pod}/{container}", handle: (call) => sendLog(call, ports) }],
  };
}

async function sendLog({ params, query, response }: ApiCall, ports: ContainerLogPorts): Promise<void> {
  const { namespace = "", pod: podName = "", container = "" } = params;
  const options = logOptions(query, ports.splitStreams, ports.clock);
  const named = podNamed(ports.views, namespace, podName);
  if (named === undefined) throw new AnswerError(404, `pod ${JSON.stringify(podName)} does not exist`);
  const signal = untilClientLeaves(response);
  try {
    await copyLog({ named, container, options }, (bytes) => send(response, bytes), ports, signal);
    startBody(response);
    response.end();
  } catch (error) {
    if (isAbort(error, signal)) return;
    const refusal = error instanceof AnswerError ? error : new AnswerError(400, messageOf(error));
    if (!response.headersSent) throw refusal;
    // The status is sent already; the reason is all that can still be said.
    response.end(`${refusal.message}\n`);
  }
}

/** Headers leave before the first byte of the log, so that a follower of a silent container knows that it follows. */
function startBody(response: ServerResponse): void {
  if (response.headersSent) return;
  response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
  response.flushHeaders();
}

/** Resolves when the bytes have left our hands. */
async function send(response: ServerResponse, bytes: Buffer): Promise<void> {
  startBody(response);
  if (bytes.length === 0) return;
  await writePiece(response, response, bytes);
}
