import type { RuntimeService } from "../../../connections/cri/index.ts";
import { isAbort } from "../../../ground/base/index.ts";
import { untilClientLeaves } from "../http.ts";
import type { LocalViews, RuntimeViews } from "../ports.ts";
import { AnswerError, fromRuntime } from "./answer-error.ts";
import { requirePod, runningContainer } from "./pod-lookup.ts";
import type { ApiCall, ApiMount } from "./router.ts";

export interface RunPorts {
  readonly views: Pick<LocalViews, "pods" | "ownUid">;
  readonly runtimeViews: RuntimeViews;
  readonly runtime: Pick<RuntimeService, "execSync">;
}

/** /run: runs a command to its end and answers with what it printed. */
export function runService(ports: RunPorts): ApiMount {
  const handle = (call: ApiCall): Promise<void> => run(call, ports);
  return {
    type: "service",
    path: "/run",
    routes: [
      { methods: ["POST"], pattern: "{namespace}/{pod}/{container}", handle },
      { methods: ["POST"], pattern: "{namespace}/{pod}/{uid}/{container}", handle },
    ],
  };
}

async function run({ params, query, response }: ApiCall, ports: RunPorts): Promise<void> {
  const { namespace = "", pod: name = "", uid: wantedUid, container = "" } = params;
  const signal = untilClientLeaves(response);
  const { uid } = requirePod(ports.views, namespace, name);
  const running =
    wantedUid === undefined || ports.views.ownUid(wantedUid) === uid
      ? await runningContainer(ports.runtimeViews, uid, container, signal)
      : undefined;
  if (running === undefined) throw new AnswerError(500, `container not found (${JSON.stringify(container)})`);
  const cmd = (query.get("cmd") ?? "").split(" ");
  try {
    const result = await ports.runtime.execSync({ containerId: running.id, cmd, timeout: 0n }, { signal });
    if (result.exitCode !== 0) {
      const complaint = Buffer.from(result.stderr).toString();
      throw new AnswerError(500, `command '${cmd.join(" ")}' exited with ${result.exitCode}: ${complaint}`);
    }
    const output = Buffer.concat([result.stdout, result.stderr]);
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": output.length });
    response.end(output);
  } catch (error) {
    if (isAbort(error, signal)) return;
    throw error instanceof AnswerError ? error : fromRuntime(error);
  }
}
