// The words by which people and controllers tell what happened: the same as every kubelet's, so they are closed lists.

/** Why a node refuses a pod; also the reason of the pod's status and of the event. */
export type RejectionReason =
  | "AppArmor"
  | "Evicted"
  | "HostNamespaceForbidden"
  | "NodeAffinity"
  | "NodePorts"
  | "NodeShutdown"
  | `OutOf${string}`
  | "PodLevelResourcesNotSupported"
  | "PodOSNotSupported"
  | "PodOSSelectorNodeLabelDoesNotMatch"
  | "SMTAlignmentError"
  | "SupplementalGroupsPolicyNotSupported"
  | "SysctlForbidden"
  | "TaintToleration"
  | "TopologyAffinityError"
  | "UnexpectedAdmissionError";

/** Why an image can't be used. */
export type ImageReason =
  | "ErrImageNeverPull"
  | "ErrImagePull"
  | "ImageInspectError"
  | "ImagePullBackOff"
  | "InvalidImageName"
  | "RegistryUnavailable"
  | "SignatureValidationFailed";

/** Why a container, or the sandbox it needs, could not be started: what it waits with in the pod's status. */
export type StartReason =
  | ImageReason
  | "CrashLoopBackOff"
  | "CreateContainerConfigError"
  | "CreateContainerError"
  | "CreatePodSandboxError"
  | "PostStartHookError"
  | "RunContainerError";

/** Why a worker tries again later: what `nodelet why` shows. */
export type RetryReason =
  | StartReason
  | "FailedMount"
  | "FailedPrepareDynamicResources"
  | "FailedUnprepareDynamicResources"
  | "NameInUse"
  | "NetworkNotReady"
  | "ResizeError"
  | "SandboxChanged"
  | "SyncError";

/** Events about pods and about the Node. */
export type EventReason =
  | RejectionReason
  | "AlreadyMountedVolume"
  | "BackOff"
  | "Created"
  | "DNSConfigForming"
  | "DeadlineExceeded"
  | "ErrImageNeverPull"
  | "ExceededGracePeriod"
  | "Failed"
  | "FailedCreatePodContainer"
  | "FailedCreatePodSandBox"
  | "FailedKillPod"
  | "FailedMapVolume"
  | "FailedMount"
  | "FailedPostStartHook"
  | "FailedPreStopHook"
  | "FailedPrepareDynamicResources"
  | "FailedToRetrieveImagePullSecret"
  | "FailedUnprepareDynamicResources"
  | "FailedValidation"
  | "FileSystemResizeFailed"
  | "FileSystemResizeSuccessful"
  | "InspectFailed"
  | "Killing"
  | "LifecycleHTTPFallback"
  | "MissingClusterDNS"
  | "NetworkNotReady"
  | "OOMKilling"
  | "Preempting"
  | "ProbeWarning"
  | "Pulled"
  | "Pulling"
  | "ResizeCompleted"
  | "ResizeDeferred"
  | "ResizeError"
  | "ResizeInfeasible"
  | "ResizeStarted"
  | "SandboxChanged"
  | "Started"
  | "SuccessfulMountVolume"
  | "Unhealthy"
  | "VolumePermissionChangeInProgress"
  | "VolumeResizeFailed"
  | NodeEventReason;

type NodeEventReason =
  | "ContainerGCFailed"
  | "EvictionThresholdMet"
  | "FreeDiskSpaceFailed"
  | "ImageGCFailed"
  | "InvalidDiskCapacity"
  | "NodeHasDiskPressure"
  | "NodeHasInsufficientMemory"
  | "NodeHasInsufficientPID"
  | "NodeHasNoDiskPressure"
  | "NodeHasSufficientMemory"
  | "NodeHasSufficientPID"
  | "NodeNotReady"
  | "NodeNotSchedulable"
  | "KubeletConfigChanged"
  | "KubeletConfigRefused"
  | "KubeletConfigRolledBack"
  | "NodeReady"
  | "NodeSchedulable"
  | "Rebooted"
  | "Shutdown"
  | "Starting"
  | "SystemOOM"
  | "CgroupV1"
  | "PossibleMemoryBackedVolumesOnDisk"
  | "NodeAllocatableEnforced"
  | "FailedNodeAllocatableEnforcement";
