import { readdir, readFile } from "node:fs/promises";

const directory = "/sys/kernel/mm/hugepages";

/** The sizes of huge pages this kernel offers, in bytes and rising; `root` lets tests read a made-up machine. */
export async function readHugePageSizes(root = ""): Promise<readonly bigint[]> {
  let names: readonly string[];
  try {
    names = await readdir(`${root}${directory}`);
  } catch {
    return [];
  }
  return names
    .map((name) => /^hugepages-(\d+)kB$/.exec(name)?.[1])
    .filter((kibibytes) => kibibytes !== undefined)
    .map((kibibytes) => BigInt(kibibytes) * 1024n)
    .sort((a, b) => Number(a - b));
}

/** Bytes set aside for huge pages by their size. */
export async function readHugePages(root = ""): Promise<ReadonlyMap<bigint, bigint>> {
  const pages = new Map<bigint, bigint>();
  for (const size of await readHugePageSizes(root)) {
    const count = await readFile(`${root}${directory}/hugepages-${size / 1024n}kB/nr_hugepages`, "utf8");
    pages.set(size, size * BigInt(count.trim()));
  }
  return pages;
}
