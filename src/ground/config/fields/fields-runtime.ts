import { durationField, int32Field, int64Field } from "./field-kinds.ts";
import {
  atLeast,
  between,
  bool,
  duration,
  greaterThan,
  int32,
  notNegative,
  oneOf,
  strings,
  text,
  unset,
} from "./field-spec.ts";

/** The container runtime, images, logs of containers, how containers start. */
export const runtimeFields = {
  containerRuntimeEndpoint: text("unix:///run/containerd/containerd.sock", "Socket of the container runtime.", {
    flag: "container-runtime-endpoint",
  }),
  imageServiceEndpoint: text("", "Socket of the image service; empty for the runtime's.", {
    flag: "image-service-endpoint",
  }),
  runtimeRequestTimeout: duration(120_000, "Time the runtime may take to answer, except for pulls and streams.", {
    flag: "runtime-request-timeout",
  }),
  registryPullQPS: int32(5, "Image pulls per second; 0 is unlimited.", {
    flag: "registry-qps",
    pointer: true,
    check: notNegative,
  }),
  registryBurst: int32(10, "Image pulls in one burst.", { flag: "registry-burst", check: notNegative }),
  serializeImagePulls: bool(true, "Pull one image at a time.", { flag: "serialize-image-pulls", pointer: true }),
  maxParallelImagePulls: unset(int32Field, "Images pulled at the same time; unset is no limit.", {
    check: atLeast(1, "must be a positive number"),
  }),
  imagePullCredentialsVerificationPolicy: text("", "Whose images need credentials again although they are present."),
  preloadedImagesVerificationAllowlist: strings([], "Images that need no credentials once present."),
  imageMinimumGCAge: duration(120_000, "Time an image stays unused before it may be deleted.", {
    flag: "minimum-image-ttl-duration",
  }),
  imageMaximumGCAge: duration(0, "Time after which an unused image is deleted; 0 is never."),
  imageGCHighThresholdPercent: int32(85, "Disk usage that starts the deletion of images.", {
    flag: "image-gc-high-threshold",
    pointer: true,
    check: between(0, 100),
  }),
  imageGCLowThresholdPercent: int32(80, "Disk usage at which the deletion of images ends.", {
    flag: "image-gc-low-threshold",
    pointer: true,
    check: between(0, 100),
  }),
  containerLogMaxSize: text("10Mi", "Size at which a container's log file is rotated; negative is never.", {
    flag: "container-log-max-size",
  }),
  containerLogMaxFiles: int32(5, "Log files kept for each container.", {
    flag: "container-log-max-files",
    pointer: true,
    check: greaterThan(1),
  }),
  containerLogMaxWorkers: int32(1, "Log files rotated at the same time.", {
    pointer: true,
    check: atLeast(1, "must be greater than or equal to 1"),
  }),
  containerLogMonitorInterval: duration(10_000, "Time between two looks at the log files.", {
    pointer: true,
    check: atLeast(3_000, "must be a positive time duration greater than or equal to 3s"),
  }),
  seccompDefault: bool(false, "Use the runtime's seccomp profile where a pod names none.", { pointer: true }),
  hairpinMode: text("promiscuous-bridge", "Accepted; the runtime sets up the network.", {
    flag: "hairpin-mode",
    check: oneOf(["promiscuous-bridge", "hairpin-veth", "none"]),
  }),
  "crashLoopBackOff.maxContainerRestartPeriod": unset(
    durationField,
    "Longest delay between two restarts; needs the gate KubeletCrashLoopBackOffMax.",
  ),
  localStorageCapacityIsolation: bool(true, "Account for the ephemeral storage of pods.", {
    flag: "local-storage-capacity-isolation",
    pointer: true,
  }),
  "userNamespaces.idsPerPod": unset(int64Field, "User and group ids for each pod; unset is 65536."),
} as const;
