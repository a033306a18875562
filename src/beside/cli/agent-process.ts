import { constants } from "node:fs";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, hasCode, savePrivateFile } from "../../ground/base/index.ts";
import type { ApiAccess } from "./api-process.ts";
import type { CommandIo } from "./io.ts";
import { AgentCutError, LocalClient } from "./local-client.ts";
import {
  hostPort,
  identify,
  isRunning,
  type Loopback,
  lastLines,
  loopbackOf,
  type MachineLayout,
  type ProcessIdentity,
  spawnDetached,
} from "./machine/index.ts";
import { usablePort } from "./ports.ts";

/** An agent answers within a second or two; on a machine that swaps it may take this long. */
const patienceMs = 120_000;

/** Where cAdvisor's page was in older kubelets. */
export const dashboardPort = 4194;

/** The agent ended although nobody asked it to; the message has the end of its log. */
export class AgentEndedError extends Error {
  override readonly name = "AgentEndedError";
}

export interface AgentSettings {
  readonly manifests: string;
  readonly runtimeEndpoint: string;
  /** For an agent that brings its own runtime. */
  readonly flags?: readonly string[];
  /** Present when the machine has an API server. */
  readonly api?: ApiAccess;
}

/** The agent's local socket. */
export function agentClient(layout: MachineLayout): LocalClient {
  return new LocalClient(join(layout.agentRoot, "nodelet.sock"));
}

/** Starts the agent as a daemon of its own that goes on when we end. Returns when it answers. */
export async function startAgent(
  layout: MachineLayout,
  settings: AgentSettings,
  { home, env: own, clock, signal }: Pick<CommandIo, "home" | "env" | "clock" | "signal">,
): Promise<ProcessIdentity> {
  await mkdir(layout.agentRoot, { recursive: true, mode: 0o750 });
  const host = loopbackOf();
  const ports = { host, api: await usablePort(host, 10250), health: await usablePort(host, 10248) };
  const config = agentConfig(layout, settings, ports);
  await savePrivateFile(layout.agentConfig, `${JSON.stringify(config, undefined, 2)}\n`);
  const log = await open(layout.agentLog, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
  const args = [`--config=${layout.agentConfig}`, `--root-dir=${layout.agentRoot}`, ...(settings.flags ?? [])];
  args.push(`--dashboard-address=${hostPort(host, await usablePort(host, dashboardPort))}`);
  if (settings.api !== undefined) args.push(`--kubeconfig=${settings.api.kubeconfig}`);
  // The machine is its owner's: nothing of it is changed that `down` could not undo.
  const env = { ...own, NODELET_HOST_SETTINGS: "leave" };
  const pid = await spawnDetached(join(home, "bin", "nodelet"), args, log, env).finally(() => log.close());
  const agent = await identify(pid);
  if (agent === undefined) throw await agentEnded(layout);
  await untilAnswering(layout, agent, clock, signal);
  return agent;
}

export async function untilAnswering(
  layout: MachineLayout,
  agent: ProcessIdentity,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const client = agentClient(layout);
  const deadline = clock.monotonic() + patienceMs;
  for (;;) {
    try {
      await client.health(signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!isNotListening(error)) throw error;
    }
    if (!(await isRunning(agent))) throw await agentEnded(layout);
    if (clock.monotonic() > deadline) {
      throw new Error(
        `the agent (process ${agent.pid}) runs but does not answer; its log (${layout.agentLog}) says last:\n` +
          `${await lastLines(layout.agentLog)}`,
      );
    }
    await clock.sleep(50, signal);
  }
}

export async function agentEnded(layout: MachineLayout): Promise<AgentEndedError> {
  return new AgentEndedError(
    `the agent ended; its log (${layout.agentLog}) says last:\n${await lastLines(layout.agentLog)}`,
  );
}

/** What the agent was last started with. */
export async function configuredSettings(
  layout: MachineLayout,
): Promise<Pick<AgentSettings, "manifests" | "runtimeEndpoint"> & { readonly hasApi: boolean }> {
  const config = JSON.parse(await readFile(layout.agentConfig, "utf8"));
  const clientCaFile: string | undefined = config.authentication?.x509?.clientCAFile;
  return {
    manifests: config.staticPodPath,
    runtimeEndpoint: config.containerRuntimeEndpoint,
    hasApi: clientCaFile !== undefined,
  };
}

/** A KubeletConfiguration for a machine of one person: open to its own API server, if it has one, and root's local socket. */
export function agentConfig(
  layout: MachineLayout,
  settings: AgentSettings,
  ports: { readonly host: Loopback; readonly api: number; readonly health: number },
): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    staticPodPath: settings.manifests,
    containerRuntimeEndpoint: settings.runtimeEndpoint,
    podLogsDir: layout.podLogsDir,
    cgroupRoot: layout.cgroupRoot,
    cgroupDriver: "cgroupfs",
    address: ports.host,
    port: ports.api,
    healthzBindAddress: ports.host,
    healthzPort: ports.health,
    ...accessRules(settings.api),
    failSwapOn: false,
    // There is no controller that would attach volumes.
    enableControllerAttachDetach: false,
    // Our images cannot be pulled again, and a person's disk may well be nearly full.
    imageGCHighThresholdPercent: 100,
    evictionHard: { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
  };
}

/** Who may speak to the agent's HTTPS port: its API server and whom that one allows; without one, nobody. */
export function accessRules(api: ApiAccess | undefined): object {
  const anonymous = { enabled: false };
  if (api === undefined) {
    return { authentication: { webhook: { enabled: false }, anonymous }, authorization: { mode: "AlwaysAllow" } };
  }
  const x509 = { clientCAFile: api.clientCaFile };
  return { authentication: { webhook: { enabled: true }, anonymous, x509 }, authorization: { mode: "Webhook" } };
}

function isNotListening(error: unknown): boolean {
  return error instanceof AgentCutError || hasCode(error, "ENOENT", "ECONNREFUSED");
}
