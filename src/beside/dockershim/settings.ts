/** How the shim is to work; where a path is not given, the usual place. */
export interface ShimSettings {
  /** Docker's socket, `unix:///…`. */
  readonly dockerEndpoint: string;
  /** Where CRI is to be had, `unix:///…`. */
  readonly endpoint: string;
  readonly rootDir: string;
  readonly sandboxImage: string;
  readonly requestTimeoutMs: number;
  readonly pullProgressDeadlineMs: number;
  readonly network: NetworkSettings;
  /** Undefined: whatever Docker has. */
  readonly cgroupDriver: string | undefined;
  /** Where exec, attach and port-forward are streamed from. */
  readonly streamingAddress: string;
}

export type NetworkSettings =
  | { readonly plugin: "cni"; readonly confDir: string; readonly binDirs: readonly string[] }
  /** Docker's own bridge. */
  | { readonly plugin: "docker" };

export const defaultSettings: ShimSettings = {
  dockerEndpoint: "unix:///var/run/docker.sock",
  endpoint: "unix:///var/run/dockershim.sock",
  rootDir: "/var/lib/dockershim",
  sandboxImage: "registry.k8s.io/pause:3.10",
  // Docker may take its time, but not longer than a kubelet waits by default.
  requestTimeoutMs: 119_000,
  pullProgressDeadlineMs: 60_000,
  network: { plugin: "cni", confDir: "/etc/cni/net.d", binDirs: ["/opt/cni/bin"] },
  cgroupDriver: undefined,
  streamingAddress: "127.0.0.1:0",
};

/** The path in `unix:///path`. */
export function socketPathOf(endpoint: string): string {
  const path = /^unix:\/\/(\/.+)$/.exec(endpoint)?.[1];
  if (path === undefined) throw new Error(`only support unix socket endpoint: found "${endpoint}"`);
  return path;
}
