import { table } from "../../base/index.ts";

const dockershim =
  "v1.24 dropped the built-in Docker support; run a CRI runtime and set --container-runtime-endpoint, or ask for nodelet's own with --container-runtime=docker";
const network = "v1.24 left the network of pods to the container runtime; configure CNI there";
const klog = "v1.26 dropped logging to files; logs go to stdout and stderr, see -v, --vmodule and --logging-format";
const sources =
  "v1.15 dropped it; set NODELET_HOST_NETWORK_SOURCES, NODELET_HOST_PID_SOURCES or NODELET_HOST_IPC_SOURCES (file,http,api) in the environment";
const rkt = "v1.11 dropped rkt; run a CRI runtime and set --container-runtime-endpoint";
const windows = "it exists on Windows only";

/** Flags of older kubelets (and of Windows ones), with what to do instead. */
export const removedFlags: Readonly<Record<string, string>> = table({
  "container-runtime":
    "v1.27 dropped it, every runtime is reached through CRI; set --container-runtime-endpoint, or --container-runtime=docker for nodelet's shim in front of Docker",
  "docker-endpoint": dockershim,
  "image-pull-progress-deadline": dockershim,
  "experimental-dockershim-root-directory": dockershim,
  "experimental-dockershim": dockershim,
  "docker-disable-shared-pid": "v1.12 dropped it; set shareProcessNamespace in the pod",
  "network-plugin": network,
  "cni-conf-dir": network,
  "cni-bin-dir": network,
  "cni-cache-dir": network,
  "network-plugin-mtu": network,
  "non-masquerade-cidr": network,
  "rkt-path": rkt,
  "rkt-api-endpoint": rkt,
  "rkt-stage1-image": rkt,
  "redirect-container-streaming": "v1.22 dropped it; streams always pass through the node agent",
  "enable-cadvisor-json-endpoints": "v1.21 dropped it; use /stats/summary or /metrics/cadvisor",
  "cadvisor-port": "v1.12 dropped it; use /metrics/cadvisor on the main port",
  "bootstrap-checkpoint-path": "v1.19 dropped it; use static pods (--pod-manifest-path)",
  "cloud-config": "v1.34 dropped it with the built-in cloud providers; use --cloud-provider=external",
  "allow-privileged":
    "v1.15 dropped it, privileged containers are always allowed; restrict them with admission policies",
  "host-network-sources": sources,
  "host-pid-sources": sources,
  "host-ipc-sources": sources,
  containerized: "v1.16 dropped it; run the node agent on the host",
  "enable-custom-metrics": "v1.11 dropped it; use a metrics pipeline of the cluster",
  "experimental-qos-reserved": "v1.11 renamed it to --qos-reserved",
  "experimental-allowed-unsafe-sysctls": "v1.11 renamed it to --allowed-unsafe-sysctls",
  "experimental-fail-swap-on": "v1.14 renamed it to --fail-swap-on",
  "chaos-chance": "v1.22 dropped it without replacement",
  "experimental-bootstrap-kubeconfig": "v1.23 renamed it to --bootstrap-kubeconfig",
  "seccomp-profile-root": "v1.23 dropped it; profiles are in the directory seccomp of --root-dir",
  "really-crash-for-testing": "v1.24 dropped it without replacement",
  "experimental-check-node-capabilities-before-mount": "v1.24 dropped it; use CSI drivers",
  "experimental-kernel-memcg-notification": "v1.25 renamed it to --kernel-memcg-notification",
  "master-service-namespace": "v1.27 dropped it; the API server's service is in the namespace default",
  "keep-terminated-pod-volumes": "v1.31 dropped it without replacement; volumes of ended pods are unmounted",
  "iptables-masquerade-bit": "v1.31 dropped it; the node agent no longer marks packets",
  "iptables-drop-bit": "v1.31 dropped it; the node agent no longer marks packets",
  "register-schedulable": "v1.34 dropped it; use --register-with-taints=node.kubernetes.io/unschedulable=:NoSchedule",
  logtostderr: klog,
  alsologtostderr: klog,
  "log-dir": klog,
  "log-file": klog,
  "log-file-max-size": klog,
  "log-backtrace-at": klog,
  "add-dir-header": klog,
  "one-output": klog,
  "skip-headers": klog,
  "skip-log-headers": klog,
  stderrthreshold: klog,
  "windows-service": windows,
  "windows-priorityclass": windows,
});
