import { criCodeOf, type RuntimeService } from "../../../connections/cri/index.ts";
import type { Clock } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { AnswerError, fromRuntime } from "../api/answer-error.ts";
import { type NamedPod, readySandbox, requirePod, runningContainer } from "../api/pod-lookup.ts";
import type { ApiCall, ApiHandler, ApiMount } from "../api/router.ts";
import type { LocalViews, RuntimeViews } from "../ports.ts";
import { spliceToRuntime } from "./splice.ts";
import { forwardedPorts, streamOptions } from "./stream-options.ts";

export interface StreamPorts {
  readonly views: Pick<LocalViews, "pods" | "ownUid">;
  readonly runtimeViews: RuntimeViews;
  readonly runtime: Pick<RuntimeService, "exec" | "attach" | "portForward">;
  readonly clock: Clock;
}

const methods = ["GET", "POST"];

/** /exec, /attach and /portForward: the runtime serves the streams, the agent connects the client with it. */
export function streamServices(ports: StreamPorts): readonly ApiMount[] {
  const inContainer = (path: string, handle: ApiHandler): ApiMount => ({
    type: "service",
    path,
    upgrades: true,
    routes: [
      { methods, pattern: "{namespace}/{pod}/{container}", handle },
      { methods, pattern: "{namespace}/{pod}/{uid}/{container}", handle },
    ],
  });
  const forward: ApiHandler = (call) => portForward(call, ports);
  return [
    inContainer("/exec", (call) => exec(call, ports)),
    inContainer("/attach", (call) => attach(call, ports)),
    {
      type: "service",
      path: "/portForward",
      upgrades: true,
      routes: [
        { methods, pattern: "{namespace}/{pod}", handle: forward },
        { methods, pattern: "{namespace}/{pod}/{uid}", handle: forward },
      ],
    },
  ];
}

async function exec(call: ApiCall, ports: StreamPorts): Promise<void> {
  const options = streamOptions(call.query);
  const { uid } = requirePod(ports.views, call.params["namespace"] ?? "", call.params["pod"] ?? "");
  const name = call.params["container"] ?? "";
  const missing = new AnswerError(500, `container not found (${JSON.stringify(name)})`);
  const cmd = call.query.getAll("command");
  await stream(call, ports, async (signal) => {
    requireUid(call, ports, uid, missing);
    return await inRunning(ports, uid, name, missing, signal, (containerId) =>
      ports.runtime.exec({ containerId, cmd, ...options }, { signal }),
    );
  });
}

async function attach(call: ApiCall, ports: StreamPorts): Promise<void> {
  const options = streamOptions(call.query);
  const named = requirePod(ports.views, call.params["namespace"] ?? "", call.params["pod"] ?? "");
  const name = call.params["container"] ?? "";
  const missing = new AnswerError(500, `container ${name} not found in pod ${named.fullName}`);
  const tty = hasTerminal(named, name);
  await stream(call, ports, async (signal) => {
    requireUid(call, ports, named.uid, missing);
    return await inRunning(ports, named.uid, name, missing, signal, (containerId) =>
      ports.runtime.attach({ containerId, ...options, stderr: options.stderr && !tty, tty }, { signal }),
    );
  });
}

async function portForward(call: ApiCall, ports: StreamPorts): Promise<void> {
  const port = [...forwardedPorts(call.query, call.request.headers.upgrade)];
  const { uid, fullName } = requirePod(ports.views, call.params["namespace"] ?? "", call.params["pod"] ?? "");
  requireUid(call, ports, uid, new AnswerError(404, "pod not found"));
  await stream(call, ports, async (signal) => {
    const sandbox = await readySandbox(ports.runtimeViews, uid, signal);
    if (sandbox === undefined) throw new AnswerError(500, `pod not found (${JSON.stringify(fullName)})`);
    return await ports.runtime.portForward({ podSandboxId: sandbox.id, port }, { signal });
  });
}

/** Gets the stream's address and connects the client with it. */
async function stream(
  call: ApiCall,
  ports: StreamPorts,
  open: (signal: AbortSignal) => Promise<{ readonly url: string }>,
): Promise<void> {
  if (call.upgrade === undefined) throw new AnswerError(500, "Upgrade request required");
  if (call.upgrade.socket.destroyed) return;
  const leaving = new AbortController();
  const leave = (): void => leaving.abort(new DOMException("the client has left", "AbortError"));
  call.upgrade.socket.once("close", leave);
  let url: string;
  try {
    ({ url } = await open(leaving.signal));
  } catch (error) {
    if (leaving.signal.aborted) return;
    throw error instanceof AnswerError ? error : fromRuntime(error);
  } finally {
    call.upgrade.socket.off("close", leave);
  }
  await spliceToRuntime(call, url, ports.clock);
}

/** What was last seen may be a moment old: a container that has ended since is looked for once more. */
async function inRunning<Result>(
  ports: StreamPorts,
  uid: PodUid,
  name: string,
  missing: AnswerError,
  signal: AbortSignal,
  act: (containerId: string) => Promise<Result>,
): Promise<Result> {
  const known = await runningContainer(ports.runtimeViews, uid, name, signal);
  if (known === undefined) throw missing;
  try {
    return await act(known.id);
  } catch (error) {
    if (signal.aborted || criCodeOf(error) === "ResourceExhausted") throw error;
    const { containers } = await ports.runtimeViews.look(uid, signal);
    const running = containers.find((container) => container.name === name && container.state === "running");
    if (running === undefined) throw missing;
    if (running.id === known.id) throw error;
    return await act(running.id);
  }
}

function requireUid(call: ApiCall, { views }: StreamPorts, uid: PodUid, otherwise: AnswerError): void {
  const asked = call.params["uid"];
  if (asked !== undefined && views.ownUid(asked) !== uid) throw otherwise;
}

/** Attaching takes the terminal the container has, whatever the client asks for. */
function hasTerminal({ pod: { spec } }: NamedPod, name: string): boolean {
  const all = [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])];
  return all.find((container) => container.name === name)?.tty === true;
}
