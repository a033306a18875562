import { baseImageNames } from "../../../src/beside/cli/machine/index.ts";

/** Where the guest runs commands for us; see `command-line.ts` for what is spoken there. */
export const commandPort = 77;

/** Disks in the order in which qemu gets them; disks that a test adds come after these. */
export const disks = { root: "/dev/vda", nodelet: "/dev/vdb", swap: "/dev/vdc" } as const;

/** What the guest writes on its console when commands can be run. */
export const readyWord = "vm-command is ready";

/**
 * Runs commands: the first line of a connection is the command in hexadecimal, the rest its standard input; the answer
 * is its output, a NUL and its exit status. A process of its own rather than a unit for each command, which takes an
 * emulated systemd a second. Sets up the network first, since that is all there is to it.
 */
const commandServer = `#!/usr/bin/perl
use strict; use warnings; use IO::Socket::INET;
system("ip link set lo up; ip address add 10.0.2.15/24 dev eth0; ip link set eth0 up; ip route add default via 10.0.2.2");
my $server = IO::Socket::INET->new(LocalPort => ${commandPort}, Listen => 64, ReuseAddr => 1) or die "$!";
open(my $console, ">", "/dev/ttyS0"); print $console "${readyWord}\\n"; close($console);
$SIG{CHLD} = "IGNORE";
while (1) {
  my $client = $server->accept() or next;
  if (fork() == 0) {
    $SIG{CHLD} = "DEFAULT";
    close($server);
    my $line = "";
    while (sysread($client, my $byte, 1)) { last if $byte eq "\\n"; $line .= $byte; }
    my $child = fork();
    if ($child == 0) {
      open(STDIN, "<&", $client); open(STDOUT, ">&", $client); open(STDERR, ">&", $client);
      chdir("/root");
      exec("bash", "-c", pack("H*", $line)) or exit(127);
    }
    waitpid($child, 0);
    my $status = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    syswrite($client, "\\0$status");
    exit(0);
  }
  close($client);
}
`;

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
      `${disks.root} / ext4 defaults 0 0`,
      `${disks.nodelet} /opt/nodelet ext4 ro 0 0`,
      `${disks.swap} none swap defaults 0 0`,
      "",
    ].join("\n"),
  },
  // A journal that is there after a power cut tells what went on before it.
  "/etc/systemd/journald.conf.d/vm.conf": {
    text: "[Journal]\nStorage=persistent\nSyncIntervalSec=5s\nRateLimitBurst=0\n",
  },
  "/etc/systemd/system/vm-command.service": {
    text: [
      "[Unit]",
      "DefaultDependencies=no",
      "After=local-fs.target systemd-sysctl.service",
      "[Service]",
      "ExecStart=/usr/local/bin/vm-command",
      "Environment=HOME=/root",
      // What a command leaves in the background goes on.
      "KillMode=process",
      "TasksMax=infinity",
      "OOMScoreAdjust=-1000",
      "[Install]",
      "WantedBy=sysinit.target",
      "",
    ].join("\n"),
  },
  "/usr/local/bin/vm-command": { text: commandServer, executable: true },
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

export const enabledUnits = ["vm-command.service", "containerd.service"];

/** Of no use here, and each costs an emulated machine seconds at every boot. */
export const maskedUnits = [
  ...["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer"],
  ...["e2scrub_all.timer", "e2scrub_reap.service", "systemd-networkd-wait-online.service"],
  ...["systemd-timesyncd.service", "getty@tty1.service", "serial-getty@ttyS0.service", "systemd-binfmt.service"],
  ...["systemd-pstore.service", "modprobe@dm_mod.service", "modprobe@efi_pstore.service", "modprobe@fuse.service"],
  ...["systemd-networkd.service", "systemd-networkd.socket", "systemd-network-generator.service"],
  ...["systemd-update-utmp.service", "systemd-update-utmp-runlevel.service", "systemd-random-seed.service"],
  ...["sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-mqueue.mount", "systemd-sysusers.service"],
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
