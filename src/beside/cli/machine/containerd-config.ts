import { baseImageNames } from "./base-images.ts";
import type { MachineLayout } from "./layout.ts";
import type { Loopback } from "./loopback.ts";

export type Snapshotter = "overlayfs" | "native";

/** The configuration of a containerd that touches nothing outside its state directory. Version 2 suits 1.6 to 2.x. */
export function containerdConfig(
  layout: MachineLayout,
  snapshotter: Snapshotter,
  cniPluginDir: string,
  loopback: Loopback,
): string {
  const quote = JSON.stringify;
  return `version = 2
root = ${quote(layout.containerdRoot)}
state = ${quote(layout.containerdRun)}
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.restart",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = ${quote(layout.containerdSocket)}

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = ${quote(baseImageNames.pause)}
  # Without CAP_SYS_RESOURCE runc cannot lower a score, and no pod would start.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_tcp_service = true
  stream_server_address = ${quote(loopback)}

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${quote(cniPluginDir)}
    conf_dir = ${quote(layout.cniConfDir)}

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = ${quote(layout.registryHostsDir)}

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = ${quote(snapshotter)}
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = ${quote(layout.runcRoot)}
        SystemdCgroup = false
`;
}
