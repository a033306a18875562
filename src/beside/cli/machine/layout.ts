import { createHash } from "node:crypto";
import { join } from "node:path";

/**
 * Where a private machine (a containerd, its network and an agent) keeps its things, and how what it makes outside its
 * directory is named. Everything follows from the directory, so that it can all be found again after any crash.
 */
export interface MachineLayout {
  readonly stateDir: string;
  /** Says that the directory is ours; written first and removed last. */
  readonly markerFile: string;
  readonly containerdConfig: string;
  readonly containerdRoot: string;
  readonly containerdRun: string;
  readonly containerdLog: string;
  readonly containerdSocket: string;
  /** `containerdSocket` as a CRI endpoint. */
  readonly endpoint: string;
  readonly runcRoot: string;
  /** Of a machine whose pods run on Docker: its daemon, and the shim in front of it. */
  readonly dockerSocket: string;
  readonly dockerConfig: string;
  readonly dockerRoot: string;
  readonly dockerRun: string;
  readonly dockerPid: string;
  readonly dockerKey: string;
  readonly dockerLog: string;
  readonly shimRoot: string;
  /** Where the shim serves CRI. */
  readonly shimEndpoint: string;
  readonly cniConfDir: string;
  readonly cniIpamDir: string;
  readonly registryHostsDir: string;
  readonly agentConfig: string;
  readonly agentRoot: string;
  readonly agentLog: string;
  /** Of the local API server: its objects, keys and certificates, and the kubeconfigs. */
  readonly apiDir: string;
  readonly apiLog: string;
  readonly adminKubeconfig: string;
  readonly podLogsDir: string;
  readonly manifestsDir: string;
  /** Name of the CNI network; it marks our iptables rules and cached CNI results. */
  readonly network: string;
  /** At most 15 characters, the limit for interfaces. */
  readonly bridge: string;
  /** The cgroup that all pods of this machine live below. */
  readonly cgroupRoot: string;
}

// A unix socket's address holds 108 bytes with the final zero; containerd adds ".ttrpc" to its own.
const longestSocketPath = 107 - ".ttrpc".length;

export function layoutOf(stateDir: string): MachineLayout {
  const id = createHash("sha256").update(stateDir).digest("hex").slice(0, 8);
  const containerdSocket = join(stateDir, "containerd.sock");
  if (Buffer.byteLength(containerdSocket) > longestSocketPath) {
    throw new Error(
      `state directory "${stateDir}" is too long for a unix socket: ` +
        `found ${Buffer.byteLength(stateDir)} bytes, at most ${longestSocketPath - "/containerd.sock".length} are possible; choose a shorter --state-dir`,
    );
  }
  return {
    stateDir,
    markerFile: join(stateDir, "machine.json"),
    containerdConfig: join(stateDir, "containerd.toml"),
    containerdRoot: join(stateDir, "containerd"),
    containerdRun: join(stateDir, "run"),
    containerdLog: join(stateDir, "containerd.log"),
    containerdSocket,
    endpoint: `unix://${containerdSocket}`,
    runcRoot: join(stateDir, "runc"),
    dockerSocket: join(stateDir, "docker.sock"),
    dockerConfig: join(stateDir, "docker.json"),
    dockerRoot: join(stateDir, "docker"),
    dockerRun: join(stateDir, "docker-run"),
    dockerPid: join(stateDir, "docker.pid"),
    dockerKey: join(stateDir, "docker-key.json"),
    dockerLog: join(stateDir, "docker.log"),
    shimRoot: join(stateDir, "dockershim"),
    shimEndpoint: `unix://${join(stateDir, "shim.sock")}`,
    cniConfDir: join(stateDir, "cni", "net.d"),
    cniIpamDir: join(stateDir, "cni", "ipam"),
    registryHostsDir: join(stateDir, "registries"),
    agentConfig: join(stateDir, "kubelet-config.yaml"),
    agentRoot: join(stateDir, "agent"),
    agentLog: join(stateDir, "agent.log"),
    apiDir: join(stateDir, "api"),
    apiLog: join(stateDir, "api.log"),
    adminKubeconfig: join(stateDir, "api", "admin.kubeconfig"),
    podLogsDir: join(stateDir, "pod-logs"),
    manifestsDir: join(stateDir, "manifests"),
    network: `nodelet-${id}`,
    bridge: `nl-${id}`,
    cgroupRoot: `/nodelet-${id}`,
  };
}
