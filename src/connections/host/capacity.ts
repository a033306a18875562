import { readdir, readFile, statfs } from "node:fs/promises";

/** Bytes set aside for huge pages by their size; `root` lets tests read a made-up machine. */
export async function readHugePages(root = ""): Promise<ReadonlyMap<bigint, bigint>> {
  const directory = `${root}/sys/kernel/mm/hugepages`;
  const pages = new Map<bigint, bigint>();
  let names: readonly string[];
  try {
    names = await readdir(directory);
  } catch {
    return pages;
  }
  for (const name of names) {
    const kibibytes = /^hugepages-(\d+)kB$/.exec(name)?.[1];
    if (kibibytes === undefined) continue;
    const size = BigInt(kibibytes) * 1024n;
    pages.set(size, size * BigInt((await readFile(`${directory}/${name}/nr_hugepages`, "utf8")).trim()));
  }
  return pages;
}

/** The size of the filesystem that holds the path. */
export async function filesystemBytes(path: string): Promise<bigint> {
  const { blocks, bsize } = await statfs(path, { bigint: true });
  return blocks * bsize;
}
