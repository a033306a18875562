import type { Accelerator } from "./accelerator.ts";
import type { Base } from "./base.ts";
import { commandPort } from "./guest-files.ts";

/** What a test may ask of its machine. */
export interface Hardware {
  readonly memoryMb: number;
  readonly cpus: number;
  /** Two sockets with a memory node and two cores each; `cpus` is then not looked at. */
  readonly numa?: { readonly threadsPerCore: number };
  /** More for the kernel's command line. */
  readonly kernelOptions?: string;
}

export interface MachineDisk {
  readonly path: string;
  readonly readonly?: boolean;
  /** Where it is served with a write cache that a power cut empties; else qemu opens the file itself. */
  readonly socketPath?: string;
}

export interface MachineFiles {
  /** In the order of their names in the guest: /dev/vda, /dev/vdb, … */
  readonly disks: readonly MachineDisk[];
  readonly console: string;
}

export function qemuArguments(
  hardware: Hardware,
  base: Base,
  files: MachineFiles,
  { accel, cpu }: Accelerator,
  hostPort: number,
): readonly string[] {
  return [
    ...["-machine", "q35", "-accel", accel, "-cpu", cpu, "-m", String(hardware.memoryMb), ...topology(hardware)],
    ...["-nodefaults", "-display", "none", "-serial", `file:${files.console}`],
    // qemu's own reset takes minutes when it emulates: a reboot ends it and we start it anew.
    "-no-reboot",
    ...files.disks.flatMap((disk) => ["-drive", `${drive(disk)},format=raw,if=virtio`]),
    // The guest reaches nothing; we reach its command port.
    ...["-netdev", `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${hostPort}-:${commandPort}`],
    ...["-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci"],
    ...["-kernel", base.kernel, "-initrd", base.initrd, "-append", kernelCommandLine(hardware)],
  ];
}

function drive({ path, readonly = false, socketPath }: MachineDisk): string {
  // qemu caches nothing of its own here; the machine's flushes are passed on.
  if (socketPath !== undefined) return `file=nbd+unix:///?socket=${socketPath},cache=writeback`;
  // No flush is waited for: it would slow the tests down, and this disk never loses power.
  return `file=${path},cache=unsafe${readonly ? ",readonly=on" : ""}`;
}

function topology({ cpus, memoryMb, numa }: Hardware): readonly string[] {
  if (numa === undefined) return ["-smp", String(cpus)];
  const half = `${memoryMb / 2}M`;
  return [
    ...["-smp", `${4 * numa.threadsPerCore},sockets=2,cores=2,threads=${numa.threadsPerCore}`],
    ...["-object", `memory-backend-ram,id=memory0,size=${half}`, "-numa", "node,nodeid=0,memdev=memory0"],
    ...["-object", `memory-backend-ram,id=memory1,size=${half}`, "-numa", "node,nodeid=1,memdev=memory1"],
    ...["-numa", "cpu,node-id=0,socket-id=0", "-numa", "cpu,node-id=1,socket-id=1"],
    ...["-numa", "dist,src=0,dst=1,val=20"],
  ];
}

function kernelCommandLine({ kernelOptions = "" }: Hardware): string {
  const wanted = "console=ttyS0 panic=-1 root=/dev/vda rw psi=1 systemd.unified_cgroup_hierarchy=1 net.ifnames=0";
  // An emulated processor that gets no turn for a moment has its timer taken for broken, and the kernel panics.
  const patient = "no_timer_check";
  const faster = "mitigations=off nokaslr audit=0 random.trust_cpu=on systemd.show_status=0";
  return `${wanted} ${patient} ${faster} ${kernelOptions}`.trim();
}
