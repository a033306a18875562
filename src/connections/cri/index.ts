// The connection to the container runtime: CRI messages, the two services as typed interfaces, and a gRPC client for them.
export type { CallHealth, CallReport, PendingCall } from "./call-log.ts";
export { cgroupDriverOf } from "./cgroup-driver.ts";
export { CriClient, type CriClientPorts, type CriClientSettings } from "./client.ts";
export { ContainerHints, type HintPorts } from "./container-hints.ts";
export { type CriEndpoint, parseEndpoint } from "./endpoint.ts";
export { type CriCode, CriError, criCodeOf, grpcStatusOf } from "./errors.ts";
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
export { type HandshakeState, RuntimeHandshake, UnsupportedRuntimeError } from "./handshake.ts";
export type { ContainerHint, HintSource } from "./hint.ts";
export type { RuntimeIdentity } from "./identity.ts";
export { type CriOperation, deadlineMs } from "./operations.ts";
export type { CallOptions, ImageService, RuntimeService } from "./services.ts";
export { untilAnswered } from "./until-answered.ts";
