import { type Clock, explain, LinkedSignal, type LogWriter, TaskScope, untilAborted } from "../../ground/base/index.ts";
import { writeClientFiles } from "./client-files.ts";
import { startLocalApi } from "./start.ts";

/** The process as the server needs it. */
export interface ServerProcess {
  readonly clock: Clock;
  readonly logWriter: LogWriter;
}

export interface ServeOptions {
  readonly dir: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly advertise: string | undefined;
  readonly nodes: readonly string[];
  readonly kubeletHost: string | undefined;
  readonly binder: "on" | "off";
}

/** `nodelet api-server`: serves until `stop` is aborted; the result is the exit code. */
export async function runApiServer(options: ServeOptions, process: ServerProcess, stop: AbortSignal): Promise<number> {
  const log = process.logWriter.logger("localapi");
  const { dir, listen, advertise, nodes, kubeletHost, binder } = options;
  try {
    await using scope = new TaskScope();
    const { clock } = process;
    const api = await startLocalApi({
      ...{ dir, listen, clock, log, scope, binder },
      ...(advertise !== undefined && { advertise }),
      ...(kubeletHost !== undefined && { kubeletHost }),
    });
    await writeClientFiles(dir, api, nodes);
    log.info("Serving the Kubernetes API", { url: api.url, dir });
    using ending = new LinkedSignal(stop, api.failed);
    await untilAborted(ending.signal);
    const { aborted: hasFailed, reason } = api.failed;
    await api.stop();
    if (!stop.aborted && hasFailed) throw reason;
    return 0;
  } catch (error) {
    log.error("command failed", new Error(explain(error), { cause: error }));
    return 1;
  }
}
