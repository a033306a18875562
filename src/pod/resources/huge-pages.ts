import { readdir } from "node:fs/promises";

/** The sizes of huge pages this kernel offers, in bytes and rising; `root` lets tests read a made-up machine. */
export async function readHugePageSizes(root = ""): Promise<readonly bigint[]> {
  let names: readonly string[];
  try {
    names = await readdir(`${root}/sys/kernel/mm/hugepages`);
  } catch {
    return [];
  }
  return names
    .map((name) => /^hugepages-(\d+)kB$/.exec(name)?.[1])
    .filter((kibibytes) => kibibytes !== undefined)
    .map((kibibytes) => BigInt(kibibytes) * 1024n)
    .sort((a, b) => Number(a - b));
}
