import type { CommandDescription } from "./description.ts";
import { stateDirOption } from "./shared-options.ts";

export const upDescription = {
  name: "up",
  group: "machine",
  summary: "run the pods of a directory on this machine, with an API server for kubectl",
  description:
    "Runs the pods of a directory on this machine, with a containerd and an API server of its own, and shows them until Ctrl-C. kubectl works with api/admin.kubeconfig below the state directory.",
  options: {
    manifests: {
      type: "text",
      value: "DIR",
      completes: "directory",
      means: "files with one Pod each; changes are followed (default: the examples)",
    },
    detach: { type: "flag", means: "return when all pods are ready or completed, and leave them running" },
    timeout: { type: "time", value: "SECONDS", default: "180", means: "how long --detach waits" },
    ...stateDirOption,
    runtime: {
      type: "choice",
      values: ["containerd", "docker"],
      default: "containerd",
      means: "what is started to run the pods; before docker stands a CRI shim",
    },
    "container-runtime-endpoint": {
      type: "text",
      value: "unix:///PATH",
      means: "use this container runtime (cgroupfs driver) instead of starting one",
    },
    "no-api": { type: "flag", means: "leave the API server out: no kubectl, 65 MB less" },
  },
  examples: [
    { line: "up", means: "the examples, until Ctrl-C" },
    { line: "up --runtime docker", means: "the same on a docker of its own" },
    { line: "up --manifests ./pods --detach", means: "for scripts: returns when all pods are ready" },
  ],
} as const satisfies CommandDescription;

export const downDescription = {
  name: "down",
  group: "machine",
  summary: "stop and remove all that `up` made",
  description:
    "Stops the agent and removes its pods and its containerd without a trace. Safe to repeat, and after crashes.",
  options: {
    ...stateDirOption,
    grace: {
      type: "time",
      value: "SECONDS",
      default: "5",
      means: "how long containers may take to end by themselves",
    },
  },
  examples: [{ line: "down --grace 30", means: "give the pods half a minute" }],
} as const satisfies CommandDescription;

export const apiServerDescription = {
  name: "api-server",
  group: "machine",
  summary: "a small Kubernetes API server for one machine",
  description:
    "A small Kubernetes API server for one machine. Writes DIR/admin.kubeconfig, DIR/ca.crt and, for each --node, DIR/node-NAME.kubeconfig; serves until SIGTERM.",
  options: {
    dir: {
      type: "text",
      value: "DIR",
      isRequired: true,
      completes: "directory",
      means: "where objects, keys and certificates are kept; made when absent, for root alone",
    },
    listen: { type: "text", value: "HOST:PORT", default: "127.0.0.1:6443", means: "where it listens" },
    advertise: {
      type: "text",
      value: "ADDRESS",
      means: "how clients reach the server, when HOST stands for all addresses",
    },
    node: { type: "texts", value: "NAME", means: "a node that shall have credentials" },
    "kubelet-host": {
      type: "text",
      value: "ADDRESS",
      means: "call every kubelet here, whatever address its node tells",
    },
    binder: {
      type: "choice",
      values: ["on", "off"],
      default: "on",
      means: "whether pods without a node are given one",
    },
  },
  isProcess: true,
  examples: [{ line: "api-server --dir /var/lib/api --node $(hostname)", means: "an API server for this machine" }],
} as const satisfies CommandDescription;

export const dockershimDescription = {
  name: "dockershim",
  group: "machine",
  summary: "serve CRI in front of Docker, for any kubelet",
  description:
    "Serves CRI v1 in front of Docker (API 1.41 or later), for any kubelet and for crictl, until SIGTERM. Stopping it ends no container.",
  options: {
    "docker-endpoint": {
      type: "text",
      value: "unix:///PATH",
      means: "docker's socket (default unix:///var/run/docker.sock)",
    },
    "container-runtime-endpoint": {
      type: "text",
      value: "unix:///PATH",
      means: "where CRI is served (default unix:///var/run/dockershim.sock)",
    },
    "experimental-dockershim-root-directory": {
      type: "text",
      value: "DIR",
      completes: "directory",
      means: "where sandboxes and their networks are noted (default /var/lib/dockershim)",
    },
    "pod-infra-container-image": {
      type: "text",
      value: "IMAGE",
      means: "of sandboxes (default registry.k8s.io/pause:3.10)",
    },
    "network-plugin": {
      type: "text",
      value: "NAME",
      means: "who gives pods their network: cni, or docker's own bridge where it is empty (default cni)",
    },
    "cni-conf-dir": { type: "text", value: "DIR", completes: "directory", means: "(default /etc/cni/net.d)" },
    "cni-bin-dir": { type: "text", value: "DIR[,DIR]", means: "(default /opt/cni/bin)" },
    "cgroup-driver": {
      type: "text",
      value: "cgroupfs|systemd",
      means: "refuse a docker with another one (default: whatever docker has)",
    },
    "runtime-request-timeout": { type: "text", value: "DURATION", means: "how long docker may take (default 1m59s)" },
    "image-pull-progress-deadline": {
      type: "text",
      value: "DURATION",
      means: "give up a pull of which nothing is heard for so long (default 1m0s)",
    },
    "streaming-bind-addr": {
      type: "text",
      value: "HOST:PORT",
      means: "where exec, attach and port-forward are served (default 127.0.0.1:0)",
    },
  },
  isProcess: true,
  examples: [
    {
      line: "dockershim --container-runtime-endpoint unix:///run/shim.sock",
      means: "for a kubelet with that container runtime endpoint",
    },
  ],
} as const satisfies CommandDescription;

export const runOnceDescription = {
  name: "run-once",
  group: "machine",
  summary: "run the pods of the manifests once and end",
  description:
    "Starts the pods that the agent's sources name, waits until each of them runs or has failed, says so and leaves them running. It takes the flags of the agent; the exit code is 0 when all pods run or have succeeded.",
  options: {
    timeout: { type: "time", value: "SECONDS", default: "300", means: "how long it waits" },
  },
  takesAgentFlags: true,
  isProcess: true,
  examples: [{ line: "run-once --pod-manifest-path /etc/pods", means: "start the pods of a directory" }],
} as const satisfies CommandDescription;
