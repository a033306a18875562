import { readKernelTable } from "./kernel-file.ts";

/** How many processes the kernel has killed for want of memory since the boot; undefined: it does not count them. */
export function readOomKills(root = ""): number | undefined {
  return readKernelTable(`${root}/proc/vmstat`)?.get("oom_kill");
}
