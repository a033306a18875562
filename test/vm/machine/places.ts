import { join } from "node:path";

/** What is kept between runs and what only lives as long as a machine. NODELET_VM_DIR puts it elsewhere. */
const directory = process.env["NODELET_VM_DIR"] ?? "/var/tmp/nodelet-vm";

export const places = {
  directory,
  /** Root file systems by the hash of what they were made from. */
  rootFileSystems: join(directory, "rootfs"),
  /** Disks that machines start with, kernel and start-up file system, by the hash of what they were made from. */
  bases: join(directory, "base"),
  /** One directory for each machine that runs, named after the process that owns it. */
  machines: join(directory, "machines"),
} as const;
