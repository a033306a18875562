import type { CheckpointContainerRequest, StopContainerRequest } from "./gen/runtime/v1/container.ts";
import type { ImageServiceDefinition, RuntimeServiceDefinition } from "./gen/runtime/v1/service.ts";
import type { ExecSyncRequest } from "./gen/runtime/v1/streaming.ts";

export type RuntimeOperation = keyof (typeof RuntimeServiceDefinition)["methods"];
export type ImageOperation = keyof (typeof ImageServiceDefinition)["methods"];
export type CriOperation = RuntimeOperation | ImageOperation;

/** The `operation_type` label of the kubelet_runtime_operations metrics. */
export const operationTypes = {
  version: "version",
  runPodSandbox: "run_podsandbox",
  stopPodSandbox: "stop_podsandbox",
  removePodSandbox: "remove_podsandbox",
  podSandboxStatus: "podsandbox_status",
  listPodSandbox: "list_podsandbox",
  createContainer: "create_container",
  startContainer: "start_container",
  stopContainer: "stop_container",
  removeContainer: "remove_container",
  listContainers: "list_containers",
  containerStatus: "container_status",
  updateContainerResources: "update_container",
  reopenContainerLog: "reopen_container_log",
  execSync: "exec_sync",
  exec: "exec",
  attach: "attach",
  portForward: "port_forward",
  containerStats: "container_stats",
  listContainerStats: "list_container_stats",
  podSandboxStats: "podsandbox_stats",
  listPodSandboxStats: "list_podsandbox_stats",
  updateRuntimeConfig: "update_runtime_config",
  status: "status",
  checkpointContainer: "checkpoint_container",
  getContainerEvents: "get_container_events",
  listMetricDescriptors: "list_metric_descriptors",
  listPodSandboxMetrics: "list_podsandbox_metrics",
  runtimeConfig: "runtime_config",
  updatePodSandboxResources: "update_podsandbox_resources",
  listImages: "list_images",
  imageStatus: "image_status",
  pullImage: "pull_image",
  removeImage: "remove_image",
  imageFsInfo: "image_fs_info",
} as const satisfies Record<CriOperation, string>;

/** Calls whose responses grow with the node: many at once would be many such responses in memory at once. */
export const bigOperations: ReadonlySet<string> = new Set<CriOperation>([
  "listPodSandbox",
  "listContainers",
  "listContainerStats",
  "listPodSandboxStats",
  "listPodSandboxMetrics",
  "listImages",
]);

// The gRPC library never sends a call whose deadline does not fit its header; grace periods can be as long as users like.
const longestDeadlineMs = 2 ** 31 - 1;

/** How long a call may take, or undefined for as long as the runtime needs. T is runtimeRequestTimeout. */
export function deadlineMs(operation: CriOperation, request: unknown, requestTimeoutMs: number): number | undefined {
  const allowedMs = unboundedDeadlineMs(operation, request, requestTimeoutMs);
  return allowedMs === undefined ? undefined : Math.min(allowedMs, longestDeadlineMs);
}

function unboundedDeadlineMs(operation: CriOperation, request: unknown, requestTimeoutMs: number): number | undefined {
  switch (operation) {
    case "runPodSandbox":
      return 2 * requestTimeoutMs;
    case "stopContainer":
      return requestTimeoutMs + seconds((request as StopContainerRequest).timeout);
    case "execSync": {
      const { timeout } = request as ExecSyncRequest;
      return timeout === 0n ? undefined : requestTimeoutMs + seconds(timeout);
    }
    case "checkpointContainer":
      return Math.max(requestTimeoutMs, seconds((request as CheckpointContainerRequest).timeout));
    case "pullImage":
    case "getContainerEvents":
      return undefined;
    default:
      return requestTimeoutMs;
  }
}

function seconds(value: bigint): number {
  return value > 0n ? Number(value) * 1000 : 0;
}
