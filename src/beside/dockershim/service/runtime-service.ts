import {
  CgroupDriver,
  type ContainerEventResponse,
  CriError,
  type RuntimeService,
  RuntimeServiceDefinition,
  StatusResponse,
} from "../../../connections/cri/index.ts";
import { messageOf, never } from "../../../ground/base/index.ts";
import { hasLabels } from "../mapping/container-status.ts";
import { givenTexts } from "../mapping/labels.ts";
import type { StreamRequests } from "../streaming/stream-requests.ts";
import type { DockerContainers } from "./containers.ts";
import type { ShimContext } from "./context.ts";
import type { DockerEvents } from "./events.ts";
import { execInContainer } from "./exec-sync.ts";
import { failure } from "./failures.ts";
import type { DockerSandboxes } from "./sandboxes.ts";
import type { Stats } from "./stats.ts";

export interface RuntimeServicePorts {
  readonly context: ShimContext;
  readonly sandboxes: DockerSandboxes;
  readonly containers: DockerContainers;
  readonly stats: Stats;
  readonly events: DockerEvents;
  readonly streams: StreamRequests;
  readonly setPodCidr: (cidr: string) => void;
}

/** CRI's RuntimeService in front of Docker. */
export function runtimeService(ports: RuntimeServicePorts): RuntimeService {
  const { context, sandboxes, containers, stats, events, streams } = ports;
  const { engine, facts } = context;
  return {
    version: async (_, { signal = never } = {}) => {
      try {
        const { version, apiVersion } = await engine.version(signal);
        return {
          version: "0.1.0",
          runtimeName: "docker",
          runtimeVersion: version,
          runtimeApiVersion: `${apiVersion}.0`,
        };
      } catch (error) {
        throw failure("version", error, "failed to get docker version");
      }
    },
    status: async ({ verbose }, { signal = never } = {}) => {
      const runtime = await problemOf(() => engine.version(signal), "docker: failed to get docker version");
      const network = await context.cni?.problem();
      return StatusResponse.fromPartial({
        status: {
          conditions: [
            condition("RuntimeReady", "DockerDaemonNotReady", runtime),
            condition(
              "NetworkReady",
              "NetworkPluginNotReady",
              network && `docker: network plugin is not ready: ${network}`,
            ),
          ],
        },
        runtimeHandlers: runtime === undefined ? await handlersOf(facts, signal) : [],
        info: verbose ? { config: JSON.stringify({ sandboxImage: context.settings.sandboxImage }) } : {},
        features: { supplementalGroupsPolicy: false },
      });
    },
    runtimeConfig: async (_, { signal = never } = {}) => {
      try {
        const { cgroupDriver } = await facts.info(signal);
        return { linux: { cgroupDriver: cgroupDriver === "systemd" ? CgroupDriver.SYSTEMD : CgroupDriver.CGROUPFS } };
      } catch (error) {
        throw failure("runtimeConfig", error);
      }
    },
    updateRuntimeConfig: async ({ runtimeConfig }) => {
      ports.setPodCidr(runtimeConfig?.networkConfig?.podCidr ?? "");
      return {};
    },

    runPodSandbox: async (request, { signal = never } = {}) => ({ podSandboxId: await sandboxes.run(request, signal) }),
    stopPodSandbox: async ({ podSandboxId }, { signal = never } = {}) => {
      await sandboxes.stop(podSandboxId, signal);
      return {};
    },
    removePodSandbox: async ({ podSandboxId }, { signal = never } = {}) => {
      await sandboxes.remove(podSandboxId, signal);
      return {};
    },
    podSandboxStatus: async ({ podSandboxId }, { signal = never } = {}) => ({
      status: await sandboxes.status(podSandboxId, signal),
      info: {},
      containersStatuses: [],
      timestamp: 0n,
    }),
    listPodSandbox: async ({ filter }, { signal = never } = {}) => {
      try {
        return { items: [...(await sandboxes.list(filter, signal))] };
      } catch (error) {
        throw failure("listPodSandbox", error);
      }
    },

    createContainer: async (request, { signal = never } = {}) => {
      const sandbox = await sandboxes.findReady("createContainer", request.podSandboxId, signal);
      try {
        return { containerId: await containers.create(request, sandbox, signal) };
      } catch (error) {
        throw failure("createContainer", error);
      }
    },
    startContainer: async ({ containerId }, { signal = never } = {}) => {
      await containers.start(containerId, signal);
      return {};
    },
    stopContainer: async ({ containerId, timeout }, { signal = never } = {}) => {
      try {
        await containers.stop(containerId, Number(timeout) * 1000, signal);
        return {};
      } catch (error) {
        throw failure("stopContainer", error, `failed to stop container "${containerId}"`);
      }
    },
    removeContainer: async ({ containerId }, { signal = never } = {}) => {
      try {
        await containers.remove(containerId, signal);
        return {};
      } catch (error) {
        throw failure("removeContainer", error, `failed to remove container "${containerId}"`);
      }
    },
    listContainers: async ({ filter }, { signal = never } = {}) => {
      try {
        return { containers: [...(await containers.list(filter, signal))] };
      } catch (error) {
        throw failure("listContainers", error);
      }
    },
    containerStatus: async ({ containerId }, { signal = never } = {}) => {
      try {
        return { status: await containers.status(containerId, signal), info: {} };
      } catch (error) {
        throw failure("containerStatus", error);
      }
    },
    updateContainerResources: async (request, { signal = never } = {}) => {
      await containers.update(request, signal);
      return {};
    },
    updatePodSandboxResources: async () => unimplemented("updatePodSandboxResources"),
    reopenContainerLog: async ({ containerId }, { signal = never } = {}) => {
      await containers.reopenLog(containerId, signal);
      return {};
    },

    execSync: async ({ containerId, cmd, timeout }, { signal = never } = {}) => {
      const find = async (bounded: AbortSignal): Promise<string> =>
        (await containers.findRunning("execSync", containerId, bounded)).id;
      return await execInContainer(context, find, cmd, timeout, signal);
    },
    exec: async (request, { signal = never } = {}) => {
      const { id } = await containers.findRunning("exec", request.containerId, signal);
      return { url: streams.exec({ ...request, containerId: id }) };
    },
    attach: async (request, { signal = never } = {}) => {
      const { id, config } = await containers.findRunning("attach", request.containerId, signal);
      return { url: streams.attach({ ...request, containerId: id, tty: config.tty }) };
    },
    portForward: async ({ podSandboxId, port }, { signal = never } = {}) => {
      const { id } = await sandboxes.findReady("portForward", podSandboxId, signal);
      return { url: streams.portForward({ podSandboxId: id, port }) };
    },

    containerStats: async ({ containerId }, { signal = never } = {}) => ({
      stats: await stats.container(containerId, signal),
    }),
    listContainerStats: async ({ filter }, { signal = never } = {}) => {
      try {
        return { stats: await stats.list(filter && { ...filter, state: undefined }, signal) };
      } catch (error) {
        throw failure("listContainerStats", error);
      }
    },
    podSandboxStats: async ({ podSandboxId }, { signal = never } = {}) => ({
      stats: await stats.sandbox(podSandboxId, signal),
    }),
    listPodSandboxStats: async ({ filter }, { signal = never } = {}) => {
      const fits = (id: string, labels: Readonly<Record<string, string>>): boolean =>
        filter === undefined ||
        (id.startsWith(filter.id) && hasLabels(givenTexts(labels).labels, filter.labelSelector));
      try {
        return { stats: await stats.listSandboxes(fits, signal) };
      } catch (error) {
        throw failure("listPodSandboxStats", error);
      }
    },

    getContainerEvents: (_, { signal = never } = {}): AsyncIterable<ContainerEventResponse> => events.stream(signal),
    checkpointContainer: async () => unimplemented("checkpointContainer"),
    listMetricDescriptors: async () => unimplemented("listMetricDescriptors"),
    listPodSandboxMetrics: async () => unimplemented("listPodSandboxMetrics"),
  };
}

function unimplemented(operation: keyof RuntimeService): never {
  const { name } = RuntimeServiceDefinition.methods[operation];
  throw new CriError("Unimplemented", operation, `docker has no way to do ${name}`);
}

async function problemOf(ask: () => Promise<unknown>, prefix: string): Promise<string | undefined> {
  try {
    await ask();
    return undefined;
  } catch (error) {
    return `${prefix}: ${messageOf(error)}`;
  }
}

function condition(type: string, reason: string, problem: string | undefined) {
  return problem === undefined ? { type, status: true } : { type, status: false, reason, message: problem };
}

async function handlersOf(facts: ShimContext["facts"], signal: AbortSignal) {
  const { runtimes } = await facts.info(signal);
  return ["", ...runtimes].map((name) => ({
    name,
    features: { recursiveReadOnlyMounts: false, userNamespaces: false },
  }));
}
