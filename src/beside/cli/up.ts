import { hostname } from "node:os";
import { join } from "node:path";
import { isAbort, messageOf, TaskScope, untilAborted } from "../../ground/base/index.ts";
import { agentClient, agentEnded, configuredSettings, startAgent, untilAnswering } from "./agent-process.ts";
import { type ApiAccess, ensureApi, stopApi } from "./api-process.ts";
import { defaultStateDir, machineAt, pathFrom, readOptions, reportingErrors, requireRoot, seconds } from "./command.ts";
import { type Command, type CommandIo, UsageError } from "./io.ts";
import { isRunning, type MachineLayout, type ProcessIdentity, processOf, stopProcess } from "./machine/index.ts";
import { countPods } from "./manifests.ts";
import { PodView } from "./pod-view.ts";
import { prepareRuntime } from "./runtime-setup.ts";

const usage = `usage: nodelet up [--manifests DIR] [--detach] [--timeout SECONDS] [--state-dir DIR]
                  [--container-runtime-endpoint unix:///PATH] [--no-api]
Runs the pods of a directory on this machine, with a containerd and an API server of its own, and shows them until
Ctrl-C. kubectl works with DIR/api/admin.kubeconfig below the state directory.
  --manifests DIR   files with one Pod each; changes are followed (default: the examples)
  --detach          return when all pods are ready or completed, and leave them running
  --timeout SECONDS how long --detach waits (default 180)
  --state-dir DIR   where containerd, the API server and the agent keep their files (default ${defaultStateDir})
  --container-runtime-endpoint unix:///PATH
                    use this container runtime (cgroupfs driver) instead of starting one
  --no-api          leave the API server out: no kubectl, 65 MB less
`;

interface UpOptions {
  readonly layout: MachineLayout;
  readonly manifests: string;
  readonly endpoint: string | undefined;
  readonly hasApi: boolean;
  readonly detach: boolean;
  readonly timeoutMs: number;
}

export const upCommand: Command = (args, io) =>
  reportingErrors("up", usage, io, async () => {
    const options = await readUpOptions(args, io);
    if (options === "help") {
      io.stdout.write(usage);
      return 0;
    }
    requireRoot();
    const expected = await countPods(options.manifests);
    const agent = await ensureAgent(options, io);
    return options.detach
      ? await waitSettled(options, expected, agent, io)
      : await showUntilStopped(options, agent, io);
  });

async function readUpOptions(args: readonly string[], io: CommandIo): Promise<UpOptions | "help"> {
  const options = readOptions(args, {
    manifests: { type: "string", default: join(io.home, "examples") },
    detach: { type: "boolean", default: false },
    timeout: { type: "string", default: "180" },
    "state-dir": { type: "string", default: defaultStateDir },
    "container-runtime-endpoint": { type: "string" },
    "no-api": { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  });
  if (options.help) return "help";
  const endpoint = options["container-runtime-endpoint"];
  if (endpoint !== undefined && !endpoint.startsWith("unix:///")) {
    throw new UsageError(`--container-runtime-endpoint wants unix:///PATH, found "${endpoint}"`);
  }
  return {
    layout: await machineAt(io, options["state-dir"]),
    manifests: pathFrom(io, options.manifests),
    endpoint,
    hasApi: !options["no-api"],
    detach: options.detach,
    timeoutMs: seconds("timeout", options.timeout),
  };
}

/** Finds the machine's agent running, or starts it and all it needs. */
async function ensureAgent(options: UpOptions, io: CommandIo): Promise<ProcessIdentity> {
  const { layout, manifests } = options;
  const progress = (step: string): void => void io.stderr.write(`nodelet: ${step}\n`);
  const running = await processOf(layout, "agent");
  if (running !== undefined) {
    await refuseOtherSettings(options);
    progress(`the agent is already running (process ${running.pid})`);
    await apiFor(options, io, progress);
    await untilAnswering(layout, running, io.clock, io.signal);
    return running;
  }
  const runtimeEndpoint = await prepareRuntime(layout, options.endpoint, io, progress);
  const api = await apiFor(options, io, progress);
  progress("starting the agent");
  const settings = { manifests, runtimeEndpoint, ...(api !== undefined && { api }) };
  const agent = await startAgent(layout, settings, io);
  progress(`running the pods of ${manifests}; the agent logs to ${layout.agentLog}`);
  return agent;
}

async function refuseOtherSettings({ layout, manifests, endpoint, hasApi }: UpOptions): Promise<void> {
  const current = await configuredSettings(layout);
  const wanted = { manifests, runtimeEndpoint: endpoint ?? layout.endpoint, hasApi };
  const described = (settings: typeof wanted): string =>
    `${settings.manifests} on ${settings.runtimeEndpoint}${settings.hasApi ? "" : " without an API server"}`;
  if (described(current) === described(wanted)) return;
  throw new Error(
    `an agent already runs the pods of ${described(current)}, ` +
      `asked for were those of ${described(wanted)}; remove it first with "nodelet down"`,
  );
}

/** The machine's API server, running; undefined when there shall be none. */
async function apiFor(
  { layout, hasApi }: UpOptions,
  io: CommandIo,
  progress: (step: string) => void,
): Promise<ApiAccess | undefined> {
  if (!hasApi) return undefined;
  // The agent calls its node the same.
  const nodeName = hostname().trim().toLowerCase();
  const api = await ensureApi(layout, nodeName, io.home, io.clock, io.signal);
  progress(`kubectl works with: export KUBECONFIG=${layout.adminKubeconfig}`);
  return api;
}

/** Feeds the view until the scope stops; an agent that ends takes the scope with it. */
function follow(scope: TaskScope, layout: MachineLayout, agent: ProcessIdentity, view: PodView, io: CommandIo): void {
  const { clock } = io;
  scope.spawn("watch pods", async (signal) => {
    for (;;) {
      try {
        view.restart();
        for await (const change of agentClient(layout).watchPods(signal)) view.apply(change);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
      }
      await clock.sleep(200, signal);
    }
  });
  scope.spawn("watch the agent", async (signal) => {
    while (await isRunning(agent)) await clock.sleep(300, signal);
    throw await agentEnded(layout);
  });
}

async function showUntilStopped(options: UpOptions, agent: ProcessIdentity, io: CommandIo): Promise<number> {
  const { layout } = options;
  const view = new PodView(io);
  {
    await using scope = new TaskScope(io.signal);
    follow(scope, layout, agent, view, io);
    scope.spawn("redraw", async (signal) => {
      for (;;) {
        view.draw();
        await io.clock.sleep(1000, signal);
      }
    });
    await untilAborted(scope.signal);
    if (!io.signal.aborted) throw causeOf(scope.signal.reason);
  }
  io.stderr.write("\nnodelet: stopping the agent\n");
  await stopProcess(agent, 20_000, io.clock);
  await stopApi(layout, io.clock);
  io.stdout.write(`${stillRunning(options)}\n`);
  return 0;
}

/** Returns when every pod is ready or completed, and says what is missing when that does not come about. */
async function waitSettled(
  options: UpOptions,
  expected: number,
  agent: ProcessIdentity,
  io: CommandIo,
): Promise<number> {
  const view = new PodView({ ...io, isTTY: false });
  const deadline = io.clock.monotonic() + options.timeoutMs;
  await using scope = new TaskScope(io.signal);
  follow(scope, options.layout, agent, view, io);
  for (;;) {
    if (scope.signal.aborted) throw io.signal.aborted ? io.signal.reason : causeOf(scope.signal.reason);
    // What came by kubectl is not ours to wait for.
    const pods = view.pods.filter(({ isOfApi }) => !isOfApi);
    const failed = pods.filter((pod) => pod.failed);
    const unsettled = pods.filter((pod) => !pod.settled);
    if (failed.length > 0) throw new Error(`failed: ${failed.map(describe).join("; ")}`);
    if (pods.length >= expected && unsettled.length === 0) break;
    if (io.clock.monotonic() >= deadline) {
      const unseen = expected > pods.length ? [`${expected - pods.length} pods the agent does not show`] : [];
      throw new Error(
        `not ready after ${options.timeoutMs / 1000} s: ${[...unsettled.map(describe), ...unseen].join("; ")}. ` +
          `The agent goes on; its log is ${options.layout.agentLog}`,
      );
    }
    await io.clock.sleep(50, io.signal);
  }
  io.stdout.write(`All ${expected} pods are ready or completed. ${stillRunning(options)}\n`);
  return 0;
}

function describe(pod: {
  readonly name: string;
  readonly status: string;
  readonly ready: number;
  readonly wanted: number;
}): string {
  return `${pod.name} (${pod.status}, ${pod.ready}/${pod.wanted} ready)`;
}

function stillRunning({ layout }: UpOptions): string {
  const option = layout.stateDir === defaultStateDir ? "" : ` -- --state-dir ${layout.stateDir}`;
  return `The pods go on running. "npm run down${option}" stops them and removes everything.`;
}

function causeOf(reason: unknown): unknown {
  return reason instanceof Error && reason.cause !== undefined ? reason.cause : new Error(messageOf(reason));
}
