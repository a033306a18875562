import { join } from "node:path";
import { CriError, type RuntimeService } from "../../../connections/cri/index.ts";
import type { Clock } from "../../../ground/base/index.ts";
import { sendJson, untilClientLeaves } from "../http.ts";
import type { LocalViews, RuntimeViews } from "../ports.ts";
import { AnswerError } from "./answer-error.ts";
import { containerNames, requirePod, runningContainer } from "./pod-lookup.ts";
import type { ApiCall, ApiMount } from "./router.ts";

export interface CheckpointPorts {
  readonly views: Pick<LocalViews, "pods">;
  readonly runtimeViews: RuntimeViews;
  readonly runtime: Pick<RuntimeService, "checkpointContainer">;
  readonly clock: Clock;
  /** Where checkpoints are written. */
  readonly directory: string;
}

/** /checkpoint: has the runtime write a container's state into an archive. */
export function checkpointService(ports: CheckpointPorts): ApiMount {
  return {
    type: "service",
    path: "/checkpoint/",
    routes: [
      {
        methods: ["POST"],
        pattern: "{namespace}/{pod}/{container}",
        produces: "application/json",
        handle: (call) => checkpoint(call, ports),
      },
    ],
  };
}

async function checkpoint({ params, query, response }: ApiCall, ports: CheckpointPorts): Promise<void> {
  const { namespace = "", pod: name = "", container = "" } = params;
  const signal = untilClientLeaves(response);
  const { pod, uid } = requirePod(ports.views, namespace, name);
  if (!containerNames(pod).includes(container)) throw new AnswerError(404, `container ${container} does not exist`);
  const asked = query.getAll("timeout").at(-1) ?? "0";
  if (!/^[+-]?\d{1,18}$/.test(asked)) throw new AnswerError(404, "cannot parse value of timeout parameter");
  const failed = (why: string): AnswerError =>
    new AnswerError(500, `checkpointing of ${namespace}/${name}/${container} failed (${why})`);
  const running = await runningContainer(ports.runtimeViews, uid, container, signal);
  if (running === undefined) throw failed(`container not found (${JSON.stringify(container)})`);
  const file = `checkpoint-${name}_${namespace}-${container}-${localTime(new Date(ports.clock.now()))}.tar`;
  const location = join(ports.directory, file);
  try {
    const request = { containerId: running.id, location, timeout: BigInt(asked) };
    await ports.runtime.checkpointContainer(request, { signal });
  } catch (error) {
    throw failed(error instanceof CriError ? error.rpcText : String(error));
  }
  sendJson(response, { items: [location] });
}

/** RFC 3339 in the machine's zone, to the second. */
function localTime(date: Date): string {
  const offset = -date.getTimezoneOffset();
  const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, 19);
  if (offset === 0) return `${local}Z`;
  const two = (value: number): string => String(Math.trunc(Math.abs(value))).padStart(2, "0");
  return `${local}${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
}
