import { readKernelFile } from "./kernel-file.ts";

const sectorBytes = 512;
// Parts of disks, and what is made of other disks, would be counted twice.
const uncounted = /^(?:loop|ram|zram|dm-|md|sr|fd|sd[a-z]+\d|vd[a-z]+\d|xvd[a-z]+\d|nvme\d+n\d+p|mmcblk\d+p)/;

/** What all disks of the machine have read and written since it was started. */
export function readDisksTotal(root = ""): { readonly readBytes: number; readonly writtenBytes: number } {
  let [readBytes, writtenBytes] = [0, 0];
  for (const line of (readKernelFile(`${root}/proc/diskstats`) ?? "").split("\n")) {
    const [, , name, , , sectorsRead, , , , sectorsWritten] = line.trim().split(/\s+/);
    if (name === undefined || uncounted.test(name)) continue;
    readBytes += Number(sectorsRead ?? 0) * sectorBytes;
    writtenBytes += Number(sectorsWritten ?? 0) * sectorBytes;
  }
  return { readBytes, writtenBytes };
}
