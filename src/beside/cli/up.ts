import { hostname } from "node:os";
import { join } from "node:path";
import { isAbort, messageOf, TaskScope, untilAborted } from "../../ground/base/index.ts";
import {
  AgentEndedError,
  agentClient,
  agentEnded,
  configuredSettings,
  dashboardPort,
  startAgent,
  untilAnswering,
} from "./agent-process.ts";
import { type ApiAccess, ensureApi, stopApi } from "./api-process.ts";
import { machineAt, pathFrom, requireRoot } from "./command.ts";
import { dashboardAddress } from "./dashboard-command.ts";
import { defineCommand } from "./define-command.ts";
import { type CommandIo, UsageError } from "./io.ts";
import { isRunning, type MachineLayout, type ProcessIdentity, processOf, stopProcess } from "./machine/index.ts";
import { countPods } from "./manifests.ts";
import { PodView } from "./pod-view.ts";
import type { PullAnswer } from "./pull-text.ts";
import { dockerFlags, endpointOf, prepareRuntime, type WantedRuntime } from "./runtime-setup.ts";
import type { OptionValues } from "./table/description.ts";
import { upDescription } from "./table/machine-commands.ts";
import { defaultStateDir } from "./table/shared-options.ts";

interface UpOptions {
  readonly layout: MachineLayout;
  readonly manifests: string;
  readonly runtime: WantedRuntime;
  readonly hasApi: boolean;
  readonly detach: boolean;
  readonly timeoutMs: number;
}

export const upCommand = defineCommand(upDescription, async ({ options: given }, io) => {
  const options = await readUpOptions(given, io);
  requireRoot();
  const expected = await countPods(options.manifests);
  const agent = await ensureAgent(options, io);
  return options.detach ? await waitSettled(options, expected, agent, io) : await showUntilStopped(options, agent, io);
});

async function readUpOptions(options: OptionValues<typeof upDescription.options>, io: CommandIo): Promise<UpOptions> {
  return {
    layout: await machineAt(io, options["state-dir"]),
    manifests: pathFrom(io, options.manifests ?? join(io.home, "examples")),
    runtime: wantedRuntime(options.runtime, options["container-runtime-endpoint"]),
    hasApi: !options["no-api"],
    detach: options.detach,
    timeoutMs: options.timeout,
  };
}

function wantedRuntime(name: "containerd" | "docker", endpoint: string | undefined): WantedRuntime {
  if (endpoint === undefined) return { type: name === "docker" ? "docker" : "private" };
  if (name === "docker") throw new UsageError("--runtime docker starts a docker of its own: it takes no endpoint");
  if (!endpoint.startsWith("unix:///")) {
    throw new UsageError(`--container-runtime-endpoint wants unix:///PATH, found "${endpoint}"`);
  }
  return { type: "external", endpoint };
}

/** Finds the machine's agent running, or starts it and all it needs. */
async function ensureAgent(options: UpOptions, io: CommandIo): Promise<ProcessIdentity> {
  const { layout, manifests } = options;
  const progress = (step: string): void => void io.stderr.write(`nodelet: ${step}\n`);
  const running = await processOf(layout, "agent");
  if (running !== undefined && (await isThere(running, options, io, progress))) return running;
  const runtimeEndpoint = await prepareRuntime(layout, options.runtime, io, progress);
  const api = await apiFor(options, io, progress);
  progress("starting the agent");
  const flags = options.runtime.type === "docker" ? await dockerFlags(layout) : [];
  const settings = { manifests, runtimeEndpoint, flags, ...(api !== undefined && { api }) };
  const agent = await startAgent(layout, settings, io);
  progress(`running the pods of ${manifests}; the agent logs to ${layout.agentLog}`);
  await sayDashboard(layout, progress);
  return agent;
}

/** False: it was about to end. One that was killed is found running until the kernel is done with it. */
async function isThere(
  running: ProcessIdentity,
  options: UpOptions,
  io: CommandIo,
  progress: (step: string) => void,
): Promise<boolean> {
  await refuseOtherSettings(options);
  progress(`the agent is already running (process ${running.pid})`);
  await apiFor(options, io, progress);
  try {
    await untilAnswering(options.layout, running, io.clock, io.signal);
  } catch (error) {
    if (!(error instanceof AgentEndedError)) throw error;
    progress("it has just ended");
    return false;
  }
  await sayDashboard(options.layout, progress);
  return true;
}

/** The pages are there to be looked at, but nothing waits for them. */
async function sayDashboard({ agentRoot, agentLog }: MachineLayout, progress: (step: string) => void): Promise<void> {
  const address = await dashboardAddress(agentRoot);
  if (address === undefined) return progress(`there is no dashboard; ${agentLog} says why`);
  const isElsewhere = !address.includes(`:${dashboardPort}/`);
  const note = isElsewhere ? ` (port ${dashboardPort} is taken by another program)` : "";
  progress(`the dashboard is at ${address}${note}`);
}

async function refuseOtherSettings({ layout, manifests, runtime, hasApi }: UpOptions): Promise<void> {
  const current = await configuredSettings(layout);
  const wanted = { manifests, runtimeEndpoint: endpointOf(layout, runtime), hasApi };
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
        // Only a person at a terminal sees how far they are, and only while something waits.
        if (io.isTTY) view.showPulls(view.mayPull ? await pullsOf(layout, signal) : []);
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

/** None while the agent does not answer. */
async function pullsOf(layout: MachineLayout, signal: AbortSignal): Promise<readonly PullAnswer[]> {
  try {
    return await agentClient(layout).pulls(signal);
  } catch (error) {
    if (isAbort(error, signal)) throw error;
    return [];
  }
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
