import type { ServerResponse } from "node:http";
import type { RuntimeService } from "../../../connections/cri/index.ts";
import { type Clock, isAbort, messageOf } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { AnswerError } from "../api/answer-error.ts";
import { containerNames, type NamedPod, podNamed } from "../api/pod-lookup.ts";
import type { ApiCall, ApiMount } from "../api/router.ts";
import { untilClientLeaves, writePiece } from "../http.ts";
import type { LocalViews, RuntimeViews } from "../ports.ts";
import { logInstance, mayStillWrite } from "./log-instance.ts";
import { logOptions } from "./log-options.ts";
import { type ContainerLife, readLog } from "./read-log.ts";

export interface ContainerLogPorts {
  readonly views: Pick<LocalViews, "pods" | "watchPods">;
  readonly runtimeViews: Pick<RuntimeViews, "latest">;
  readonly runtime: Pick<RuntimeService, "containerStatus">;
  readonly clock: Clock;
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
  // The name goes no further unless it is one of the spec's: it must never become part of a path.
  if (!containerNames(named.pod).includes(container)) {
    const where = `${JSON.stringify(container)} not found in pod ${JSON.stringify(podName)}`;
    throw new AnswerError(404, `container ${where}`);
  }
  const id = logInstance(named.pod, container, options.previous);
  const signal = untilClientLeaves(response);
  try {
    const path = await logPathOf(named.uid, id, ports, signal);
    const follow = options.follow ? lifeOf(named, container, id, ports) : undefined;
    await readLog({ ...options, path, follow }, (bytes) => send(response, bytes), ports.clock, signal);
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

/** What the runtime says of the instance; asked only when the agent does not know it already. */
async function logPathOf(uid: PodUid, id: string, ports: ContainerLogPorts, signal: AbortSignal): Promise<string> {
  const containerId = id.replace(/^[^:]*:\/\//, "");
  const known = ports.runtimeViews.latest(uid)?.containers.find((container) => container.id === containerId)?.logPath;
  if (known !== undefined && known !== "") return known;
  try {
    const { status } = await ports.runtime.containerStatus({ containerId, verbose: false }, { signal });
    if (status !== undefined && status.logPath !== "") return status.logPath;
  } catch (error) {
    if (isAbort(error, signal)) throw error;
  }
  throw new AnswerError(400, `unable to retrieve container logs for ${id}`);
}

function lifeOf({ uid }: NamedPod, container: string, id: string, { views }: ContainerLogPorts): ContainerLife {
  const podOf = () => views.pods().find(({ metadata }) => metadata?.uid === uid);
  return {
    hasEnded: () => !mayStillWrite(podOf(), container, id),
    onChange: (listener) =>
      views.watchPods(({ object }) => {
        if (object.metadata?.uid === uid) listener();
      }),
  };
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
