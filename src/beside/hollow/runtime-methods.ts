import {
  CriError,
  type PodSandboxStatusResponse,
  type RuntimeService,
  RuntimeServiceDefinition,
  StatusResponse,
} from "../../connections/cri/index.ts";
import { mapAtMost } from "../../ground/base/index.ts";
import type { Containers } from "./containers.ts";
import type { CallContext } from "./context.ts";
import { type ExecScript, execSync } from "./exec.ts";
import { containerMessage, containerStatusMessage, sandboxMessage, sandboxStatusMessage } from "./messages.ts";
import type { RuntimeTraits } from "./options.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { containerStats, sandboxStats } from "./stats.ts";

/** Containers of one sandbox that end at the same time, as in a real runtime. */
const stopsAtOnce = 64;

type UnaryOperation = Exclude<keyof RuntimeService, "getContainerEvents">;

/** The runtime's side of each method: the request, and what ends the call. */
export type RuntimeMethods = {
  readonly [Operation in UnaryOperation]: (
    request: Parameters<RuntimeService[Operation]>[0],
    context: CallContext,
  ) => ReturnType<RuntimeService[Operation]>;
};

export interface MethodPorts {
  readonly traits: RuntimeTraits;
  readonly sandboxes: Sandboxes;
  readonly containers: Containers;
  readonly now: () => bigint;
  readonly conditions: () => { runtimeProblem: string | undefined; networkProblem: string | undefined };
  readonly answerExec: ExecScript;
}

/** What each call does, without faults, deadlines or death of the runtime: those lie around it. */
export function runtimeMethods(ports: MethodPorts): RuntimeMethods {
  const { traits, sandboxes, containers, now } = ports;

  function container(id: string, operation: string, what = `an error occurred when try to find container "${id}"`) {
    return containers.find(id, operation, what) ?? missing(operation, what);
  }
  function sandbox(id: string, operation: string, what = `an error occurred when try to find sandbox "${id}"`) {
    return sandboxes.find(id, operation, what) ?? missing(operation, what);
  }
  async function removeAll(found: readonly ContainerRecord[]): Promise<void> {
    for (const each of found) containers.remove(each);
  }
  async function killAll(found: readonly ContainerRecord[], context: CallContext): Promise<void> {
    await mapAtMost(stopsAtOnce, found, (each) => containers.stop(each, 0n, context));
  }

  return {
    version: async () => ({
      version: "0.1.0",
      runtimeName: traits.name,
      runtimeVersion: traits.version,
      runtimeApiVersion: "v1",
    }),
    status: async () => {
      const { runtimeProblem, networkProblem } = ports.conditions();
      return StatusResponse.fromPartial({
        status: {
          conditions: [
            condition("RuntimeReady", "RuntimeNotReady", runtimeProblem),
            condition(
              "NetworkReady",
              "NetworkPluginNotReady",
              networkProblem && `Network plugin returns error: ${networkProblem}`,
            ),
          ],
        },
        runtimeHandlers: traits.handlers?.map((handler) => ({ ...handler })) ?? [],
        features: traits.features && { ...traits.features },
      });
    },
    runtimeConfig: async () => {
      if (traits.cgroupDriver === undefined) return unimplemented("runtimeConfig");
      return { linux: { cgroupDriver: traits.cgroupDriver } };
    },
    updateRuntimeConfig: async () => ({}),

    runPodSandbox: async (request, context) => ({ podSandboxId: (await sandboxes.run(request, context)).id }),
    stopPodSandbox: async ({ podSandboxId }, context) => {
      const found = sandbox(podSandboxId, "stopPodSandbox");
      await killAll(containers.of(found), context);
      sandboxes.stop(found);
      return {};
    },
    removePodSandbox: async ({ podSandboxId }, context) => {
      const found = sandboxes.find(podSandboxId, "removePodSandbox", "an error occurred when try to find sandbox");
      if (found === undefined) return {};
      await killAll(containers.of(found), context);
      await removeAll(containers.of(found));
      sandboxes.remove(found);
      return {};
    },
    podSandboxStatus: async ({ podSandboxId }) => {
      const found = sandbox(podSandboxId, "podSandboxStatus", "an error occurred when try to find sandbox");
      return withContainers(found, containers.of(found), traits, now);
    },
    listPodSandbox: async ({ filter }) => ({ items: sandboxes.list(filter).map(sandboxMessage) }),

    createContainer: async (request, context) => {
      const found = sandbox(
        request.podSandboxId,
        "createContainer",
        `failed to find sandbox id "${request.podSandboxId}"`,
      );
      if (found.state !== "ready") {
        const why = `no running task found: task ${found.id} not found`;
        missing("createContainer", `failed to get sandbox container task: ${why}`);
      }
      return { containerId: (await containers.create(request, found, context)).id };
    },
    startContainer: async ({ containerId }) => {
      containers.start(container(containerId, "startContainer"));
      return {};
    },
    stopContainer: async ({ containerId, timeout }, context) => {
      await containers.stop(container(containerId, "stopContainer"), timeout, context);
      return {};
    },
    removeContainer: async ({ containerId }) => {
      const found = containers.find(containerId, "removeContainer", "an error occurred when try to find container");
      if (found !== undefined) containers.remove(found);
      return {};
    },
    listContainers: async ({ filter }) => ({ containers: containers.list(filter).map(containerMessage) }),
    containerStatus: async ({ containerId }) => ({
      status: containerStatusMessage(container(containerId, "containerStatus")),
      info: {},
    }),
    updateContainerResources: async ({ containerId, linux }) => {
      containers.updateResources(container(containerId, "updateContainerResources", "failed to find container"), linux);
      return {};
    },
    updatePodSandboxResources: async () => unimplemented("updatePodSandboxResources"),
    reopenContainerLog: async ({ containerId }) => {
      const found = container(
        containerId,
        "reopenContainerLog",
        `an error occurred when try to find container "${containerId}"`,
      );
      if (found.life.step !== "running")
        throw new CriError("Unknown", "reopenContainerLog", "container is not running");
      found.log.open();
      return {};
    },

    execSync: async ({ containerId, cmd, timeout }, { caller }) => {
      const found = container(
        containerId,
        "execSync",
        `failed to exec in container: failed to find container "${containerId}" in store`,
      );
      const answer = ports.answerExec(cmd, found);
      const { unknownPrograms, clock } = traits;
      return await execSync(
        { container: found, command: cmd, timeoutSeconds: timeout, answer, unknownPrograms },
        clock,
        caller,
      );
    },
    exec: async (request) => {
      const found = container(
        request.containerId,
        "exec",
        `failed to find container "${request.containerId}" in store`,
      );
      requireStreams("exec", request);
      requireRunning(found, "exec");
      return streamingUrl("exec", found.id, traits);
    },
    attach: async (request) => {
      const found = container(request.containerId, "attach", "failed to find container in store");
      requireStreams("attach", request);
      requireRunning(found, "attach");
      return streamingUrl("attach", found.id, traits);
    },
    portForward: async ({ podSandboxId }) => {
      const found = sandbox(podSandboxId, "portForward", `failed to find sandbox "${podSandboxId}"`);
      if (found.state !== "ready") {
        throw new CriError("Unknown", "portForward", `sandbox container "${found.id}" is not running`);
      }
      return streamingUrl("portForward", found.id, traits);
    },

    containerStats: async ({ containerId }) => ({
      stats: containerStats(container(containerId, "containerStats", "failed to find container"), now()),
    }),
    listContainerStats: async ({ filter }) => ({
      stats: containers.list(filter && { ...filter, state: undefined }).map((each) => containerStats(each, now())),
    }),
    podSandboxStats: async ({ podSandboxId }) => {
      const found = sandbox(
        podSandboxId,
        "podSandboxStats",
        `an error occurred when trying to find sandbox ${podSandboxId}`,
      );
      return { stats: sandboxStats(found, containers.of(found), now()) };
    },
    listPodSandboxStats: async ({ filter }) => {
      const ready = sandboxes.list(filter && { ...filter, state: undefined }).filter(({ state }) => state === "ready");
      return { stats: ready.map((each) => sandboxStats(each, containers.of(each), now())) };
    },

    checkpointContainer: async () => unimplemented("checkpointContainer"),
    listMetricDescriptors: async () => unimplemented("listMetricDescriptors"),
    listPodSandboxMetrics: async () => unimplemented("listPodSandboxMetrics"),
  };
}

function missing(operation: string, what: string): never {
  throw new CriError("NotFound", operation, `${what}: not found`);
}

export function unimplemented(operation: keyof RuntimeService): never {
  const { name } = RuntimeServiceDefinition.methods[operation];
  throw new CriError("Unimplemented", operation, `method ${name} not implemented`);
}

function condition(type: string, reasonIfNot: string, problem: string | undefined) {
  return {
    type,
    status: problem === undefined,
    reason: problem === undefined ? "" : reasonIfNot,
    message: problem ?? "",
  };
}

/** Runtimes with an event stream add the containers, and the moment it was all true. */
function withContainers(
  sandbox: SandboxRecord,
  containers: readonly ContainerRecord[],
  { events }: RuntimeTraits,
  now: () => bigint,
): PodSandboxStatusResponse {
  const status = sandboxStatusMessage(sandbox);
  if (events === "absent") return { status, info: {}, containersStatuses: [], timestamp: 0n };
  return { status, info: {}, containersStatuses: containers.map(containerStatusMessage), timestamp: now() };
}

interface Streams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

function requireStreams(operation: string, { stdin, stdout, stderr, tty }: Streams): void {
  if (!stdin && !stdout && !stderr) {
    throw new CriError("InvalidArgument", operation, "one of stdin, stdout, or stderr must be set");
  }
  if (tty && stderr) throw new CriError("InvalidArgument", operation, "tty and stderr cannot both be true");
}

function requireRunning({ life }: ContainerRecord, operation: string): void {
  if (life.step === "running") return;
  throw new CriError("Unknown", operation, `container is in CONTAINER_${life.step.toUpperCase()} state`);
}

function streamingUrl(operation: "exec" | "attach" | "portForward", id: string, { streamingBaseUrl }: RuntimeTraits) {
  if (streamingBaseUrl === undefined) throw new CriError("Unknown", operation, "no streaming server is running");
  return { url: `${streamingBaseUrl}/${operation.toLowerCase()}/${id.slice(0, 8)}` };
}
