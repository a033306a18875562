import { lookup } from "node:dns/promises";
import { readdir, readFile, statfs } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import type { Clock } from "../base/index.ts";
import { defaultAddress } from "../host/index.ts";
import type { NetworkFacts } from "./ports.ts";

// A resolver that does not answer must not keep the node from being ready.
const longestLookupMs = 2_000;

/** The network as this machine sees it. */
export function systemNetwork(clock: Clock): NetworkFacts {
  return {
    ownAddresses: () =>
      new Set(Object.values(networkInterfaces()).flatMap((infos) => (infos ?? []).map(({ address }) => address))),
    lookup: async (host, signal) => {
      signal.throwIfAborted();
      const found = lookup(host, { all: true }).then(
        (addresses) => addresses.map(({ address }) => address),
        () => [],
      );
      const stop = new AbortController();
      const late = clock.sleep(longestLookupMs, stop.signal).then(
        () => [],
        () => [],
      );
      try {
        return await Promise.race([found, late]);
      } finally {
        stop.abort();
      }
    },
    defaultAddress: (family) => defaultAddress(family),
  };
}

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
