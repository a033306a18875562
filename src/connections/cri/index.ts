// The connection to the container runtime: CRI messages, the two services as typed interfaces, and a gRPC client for them.
export type { CallReport } from "./call-log.ts";
export { CriClient } from "./client.ts";
export { type CriCode, CriError, criCodeOf } from "./errors.ts";
export {
  type Capability,
  type CDIDevice,
  CgroupDriver,
  Container,
  ContainerConfig,
  ContainerEventResponse,
  ContainerEventType,
  ContainerFilter,
  ContainerState,
  ContainerStats,
  ContainerStatus,
  ContainerStatusResponse,
  type CreateContainerRequest,
  type Device,
  type DNSConfig,
  type ExecSyncResponse,
  type FilesystemUsage,
  type HugepageLimit,
  Image,
  ImageServiceDefinition,
  ImageSpec,
  KeyValue,
  LinuxContainerConfig,
  LinuxContainerResources,
  LinuxContainerSecurityContext,
  LinuxPodSandboxConfig,
  LinuxSandboxSecurityContext,
  Mount,
  MountPropagation,
  NamespaceMode,
  NamespaceOption,
  PodSandbox,
  PodSandboxConfig,
  PodSandboxFilter,
  PodSandboxState,
  PodSandboxStats,
  PodSandboxStatus,
  type PodSandboxStatusResponse,
  type PortMapping,
  Protocol,
  PullImageRequest,
  type RunPodSandboxRequest,
  type RuntimeCondition,
  RuntimeServiceDefinition,
  type SELinuxOption,
  type SecurityProfile,
  SecurityProfile_ProfileType,
  Signal,
  StatusResponse,
  SupplementalGroupsPolicy,
  UpdateContainerResourcesRequest,
  type UserNamespace,
} from "./gen/index.ts";
export { UnsupportedRuntimeError } from "./handshake.ts";
export type { RuntimeIdentity } from "./identity.ts";
export type { ImageContent, Ingest, ManifestLayers } from "./image-content.ts";
export { liveLayers, type MeasureLayer } from "./live-layers.ts";
export { type CriOperation, deadlineMs } from "./operations.ts";
export type { RuntimeEvent } from "./runtime-event.ts";
export { type RuntimeEventPorts, RuntimeEvents } from "./runtime-events.ts";
export {
  criConnection,
  type RuntimeConnection,
  type RuntimeConnectionPorts,
  RuntimeLink,
} from "./runtime-link.ts";
export { type CriServices, servedCri } from "./served.ts";
export type { CallOptions, ImageService, RuntimeService } from "./services.ts";
export { untilAnswered } from "./until-answered.ts";
