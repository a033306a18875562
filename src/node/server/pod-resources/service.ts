import { type Clock, TokenBucket } from "../../../ground/base/index.ts";
import { serveUnix, serviceOf } from "../../../ground/grpc/index.ts";
import { PodResourcesListerDefinition } from "./gen/pod-resources.ts";
import { PodResourcesListerDefinition as OldDefinition } from "./gen/pod-resources-v1alpha1.ts";
import { deviceMessages, memoryMessage, oldContainers, podMessage } from "./messages.ts";
import type { PodResourcesPorts, PodResourcesSettings } from "./ports.ts";

const perSecond = 100;
const burst = 10;
const requestBytes = 64 * 1024;
const mostConnections = 200;

/** Tells those who watch devices which containers have which. Reads, never decides. */
export async function servePodResources(
  socketPath: string,
  settings: PodResourcesSettings,
  ports: PodResourcesPorts,
  clock: Clock,
): Promise<AsyncDisposable> {
  const bucket = new TokenBucket(perSecond, burst, clock);
  const { showsClaims } = settings;
  const current = serviceOf(PodResourcesListerDefinition, {
    async list() {
      ports.onRequest("v1", "list");
      const pods = settings.showsActiveOnly ? ports.activePods() : [...ports.allPods()];
      return { podResources: pods.map((pod) => podMessage(pod, ports, showsClaims)) };
    },
    async getAllocatableResources() {
      ports.onRequest("v1", "get_allocatable");
      const { devices, cpus, memory } = ports.allocatable();
      return {
        devices: devices.flatMap(deviceMessages),
        cpuIds: cpus.map(BigInt),
        memory: memory.map(memoryMessage),
      };
    },
    async get({ podName, podNamespace }) {
      ports.onRequest("v1", "get");
      const pod = ports
        .activePods()
        .find(({ metadata }) => metadata.name === podName && metadata.namespace === podNamespace);
      if (settings.answersGet && pod !== undefined) return { podResources: podMessage(pod, ports, showsClaims) };
      ports.onGetFailed();
      if (!settings.answersGet) throw new Error("PodResources API Get method disabled");
      throw new Error(`pod ${podName} in namespace ${podNamespace} not found`);
    },
  });
  const old = serviceOf(OldDefinition, {
    async list() {
      ports.onRequest("v1alpha1", "list");
      const podResources = [...ports.allPods()].map((pod) => {
        const { name, namespace = "" } = pod.metadata;
        return { name, namespace, containers: oldContainers(pod, ports) };
      });
      return { podResources };
    },
  });
  const mayAnswer = (): boolean => bucket.tryTake();
  const bounds = { maxRequestBytes: requestBytes, maxConnections: mostConnections, mayAnswer };
  return await serveUnix(socketPath, [current, old], bounds);
}
