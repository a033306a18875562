import { chmod, copyFile, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { disks } from "./guest-files.ts";
import { runProgram } from "./program.ts";

/** Loads drivers, finds the root file system there and hands over to its init. */
const init = `#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs none /dev
for module in /modules/*; do $b insmod $module; done
while [ ! -b ${disks.root} ]; do $b sleep 0.1; done
$b mount -t ext4 -o rw ${disks.root} /root && $b mount --move /dev /root/dev && exec $b switch_root /root /sbin/init
`;

/** Copies the guest's kernel and makes a start-up file system with just the drivers it needs: Debian's own takes seconds more. */
export async function makeStartUpFiles(root: string, target: { readonly kernel: string; readonly initrd: string }) {
  const [release] = await readdir(join(root, "lib/modules"));
  if (release === undefined) throw new Error(`there is no kernel in ${root}`);
  await copyFile(join(root, "boot", `vmlinuz-${release}`), target.kernel);
  const directory = `${target.initrd}.d`;
  for (const name of ["bin", "dev", "root", "modules"]) await mkdir(join(directory, name), { recursive: true });
  await copyFile(join(root, "bin/busybox"), join(directory, "bin/busybox"));
  for (const [at, module] of (await modules(root, release)).entries()) {
    await copyFile(join(root, module), join(directory, "modules", `${10 + at}-${basename(module)}`));
  }
  await writeFile(join(directory, "init"), init);
  await chmod(join(directory, "init"), 0o755);
  await runProgram("sh", ["-c", 'cd "$1" && find . | busybox cpio -o -H newc > "$2"', "sh", directory, target.initrd]);
  await rm(directory, { recursive: true });
}

/** In the order in which they have to be loaded. */
async function modules(root: string, release: string): Promise<readonly string[]> {
  const args = ["modprobe", "-S", release, "--show-depends", "-a", "virtio_pci", "virtio_blk", "virtio_net", "ext4"];
  const lines = (await runProgram("chroot", [root, ...args])).split("\n");
  return [...new Set(lines.flatMap((line) => /^insmod (\S+)/.exec(line)?.[1] ?? []))];
}
