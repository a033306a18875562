import { baseImageNames } from "../../../src/cli/machine/index.ts";

/** Where the guest runs commands for us; see `command-line.ts` for what is spoken there. */
export const commandPort = 77;

/** Disks in the order in which qemu gets them; disks that a test adds come after these. */
export const disks = { root: "/dev/vda", nodelet: "/dev/vdb", swap: "/dev/vdc" } as const;

export interface GuestFile {
  readonly text: string;
  readonly executable?: true;
}

/** What makes a plain Debian the test machine. */
export const guestFiles: Readonly<Record<string, GuestFile>> = {
  "/etc/hostname": { text: "vm\n" },
  "/etc/hosts": { text: "127.0.0.1 localhost vm\n" },
  "/etc/fstab": {
    text: [
      `${disks.root} / ext4 defaults 0 1`,
      `${disks.nodelet} /opt/nodelet ext4 ro 0 0`,
      `${disks.swap} none swap defaults 0 0`,
      "",
    ].join("\n"),
  },
  "/etc/systemd/network/vm.network": {
    text: "[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nLinkLocalAddressing=no\n",
  },
  // A journal that is there after a power cut tells what went on before it.
  "/etc/systemd/journald.conf.d/vm.conf": {
    text: "[Journal]\nStorage=persistent\nSyncIntervalSec=5s\nRateLimitBurst=0\n",
  },
  "/etc/systemd/system/vm-command.socket": {
    text: `[Socket]\nListenStream=${commandPort}\nAccept=yes\nMaxConnections=64\n[Install]\nWantedBy=sockets.target\n`,
  },
  "/etc/systemd/system/vm-command@.service": {
    text: [
      "[Unit]",
      "CollectMode=inactive-or-failed",
      "[Service]",
      "ExecStart=/usr/local/bin/vm-command",
      "StandardInput=socket",
      "StandardError=inherit",
      "Environment=HOME=/root",
      // What a command leaves in the background goes on.
      "KillMode=process",
      "TasksMax=infinity",
      "",
    ].join("\n"),
  },
  "/usr/local/bin/vm-command": {
    text: '#!/bin/bash\nread -r command\nbash -c "$(base64 -d <<< "$command")" 2>&1\nprintf \'\\0%s\' $?\n',
    executable: true,
  },
  "/etc/containerd/config.toml": { text: containerdConfig() },
  "/etc/cni/net.d/10-vm.conflist": {
    text: JSON.stringify({
      cniVersion: "0.4.0",
      name: "vm",
      plugins: [
        {
          type: "bridge",
          bridge: "cni0",
          isGateway: true,
          ipam: { type: "host-local", ranges: [[{ subnet: "10.88.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] },
        },
      ],
    }),
  },
};

export const enabledUnits = ["vm-command.socket", "systemd-networkd.service", "containerd.service"];

/** Of no use here, and each costs an emulated machine seconds at every boot. */
export const maskedUnits = [
  ...["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"],
  ...["e2scrub_all.timer", "e2scrub_reap.service", "systemd-networkd-wait-online.service"],
  ...["systemd-timesyncd.service", "getty@tty1.service", "serial-getty@ttyS0.service", "systemd-binfmt.service"],
  ...["systemd-pstore.service", "modprobe@dm_mod.service", "modprobe@efi_pstore.service", "modprobe@fuse.service"],
  ...["modprobe@loop.service", "modprobe@drm.service", "modprobe@configfs.service"],
];

/** As distributions set it up for Kubernetes: container scopes below our slices, made by systemd. */
function containerdConfig(): string {
  return `version = 2
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${baseImageNames.pause}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
`;
}
