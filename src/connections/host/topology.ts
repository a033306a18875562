import { readdir, readFile } from "node:fs/promises";
import { CpuSet, ifThere, mapAtMost } from "../../ground/base/index.ts";

/** A NUMA node: CPUs and memory that are near each other. Either may be missing. */
export interface NumaNode {
  readonly id: number;
  readonly cpus: readonly CpuPlace[];
  readonly memoryBytes: number;
  /** Bytes set aside for huge pages, by their size in bytes. */
  readonly hugePages: ReadonlyMap<bigint, number>;
  /** To each node of the machine, in the order of their numbers; undefined where the kernel does not say. */
  readonly distances: readonly number[] | undefined;
}

/** Where a CPU that is online sits. */
export interface CpuPlace {
  readonly id: number;
  /** As the hardware numbers it, within its socket. */
  readonly core: number;
  readonly socket: number;
  /** The last-level cache that it shares with a part of its NUMA node only; undefined where all of the node shares one. */
  readonly cache: number | undefined;
}

export interface MachineTopology {
  /** In the order of their numbers. */
  readonly nodes: readonly NumaNode[];
}

const cpuDirectory = "/sys/devices/system/cpu";
const nodeDirectory = "/sys/devices/system/node";
/** A machine of hundreds of CPUs has thousands of files here; they must not take all threads at once. */
const filesAtOnce = 8;

/** `root` lets tests read a made-up machine. */
export async function readTopology(root = ""): Promise<MachineTopology> {
  const text = async (path: string): Promise<string> => (await readFile(`${root}${path}`, "utf8")).trim();
  const tryText = (path: string): Promise<string | undefined> => ifThere(text(path));
  const online = await tryText(`${cpuDirectory}/online`);
  const onlineCpus = online === undefined ? undefined : CpuSet.parse(online);
  const ids =
    (await ifThere(readdir(`${root}${nodeDirectory}`)))?.flatMap((name) => numberIn(/^node(\d+)$/, name)) ?? [];
  if (ids.length === 0) return { nodes: await packagesAsNodes(root, { text, tryText, online }) };
  const nodes = await mapAtMost(
    1,
    ids.sort((a, b) => a - b),
    async (id): Promise<NumaNode> => {
      const directory = `${nodeDirectory}/node${id}`;
      const own = [...CpuSet.parse((await tryText(`${directory}/cpulist`)) ?? "")].filter(
        (cpu) => onlineCpus?.has(cpu) ?? true,
      );
      const memory = numberIn(/MemTotal:\s+(\d+) kB/, (await tryText(`${directory}/meminfo`)) ?? "")[0] ?? 0;
      const distances = (await tryText(`${directory}/distance`))?.split(/\s+/).map(Number);
      return {
        id,
        cpus: await placesOf(own, { text, tryText }),
        memoryBytes: memory * 1024,
        hugePages: await hugePagesOf(root, directory, text),
        distances,
      };
    },
  );
  return { nodes };
}

interface Reads {
  readonly text: (path: string) => Promise<string>;
  readonly tryText: (path: string) => Promise<string | undefined>;
}

/** A kernel without NUMA: every package counts as a node. Memory can't be told apart, so the first has all. */
async function packagesAsNodes(
  root: string,
  { online, ...reads }: Reads & { readonly online: string | undefined },
): Promise<readonly NumaNode[]> {
  const names = (await ifThere(readdir(`${root}${cpuDirectory}`))) ?? [];
  const cpus = online === undefined ? names.flatMap((name) => numberIn(/^cpu(\d+)$/, name)) : [...CpuSet.parse(online)];
  const places = await placesOf(cpus, reads);
  const total = numberIn(/^MemTotal:\s+(\d+) kB/m, (await reads.tryText("/proc/meminfo")) ?? "")[0] ?? 0;
  const hugePages = await hugePagesOf(root, "/sys/kernel/mm", reads.text);
  return [...new Set(places.map(({ socket }) => socket))]
    .sort((a, b) => a - b)
    .map((id, index) => ({
      id,
      cpus: places.filter(({ socket }) => socket === id),
      memoryBytes: index === 0 ? total * 1024 : 0,
      hugePages: index === 0 ? hugePages : new Map(),
      distances: undefined,
    }));
}

/** The places of CPUs of one node. */
async function placesOf(cpus: readonly number[], reads: Reads): Promise<readonly CpuPlace[]> {
  const whole = CpuSet.of(cpus);
  return await mapAtMost(filesAtOnce, [...whole], async (id): Promise<CpuPlace> => {
    const topology = `${cpuDirectory}/cpu${id}/topology`;
    const [core, socket, cache] = await Promise.all([
      reads.tryText(`${topology}/core_id`),
      reads.tryText(`${topology}/physical_package_id`),
      partialCache(id, whole, reads),
    ]);
    // Firmware may say -1, or nothing: then every CPU is a core, and all are in one socket.
    return { id, core: naturalOr(core, id), socket: naturalOr(socket, 0), cache };
  });
}

/** The first cache of the third level or beyond that only some of the node's CPUs share. */
async function partialCache(cpu: number, node: CpuSet, { tryText }: Reads): Promise<number | undefined> {
  // No CPU has more than a handful of caches; the kernel numbers them without gaps.
  for (let index = 0; index < 16; index++) {
    const directory = `${cpuDirectory}/cpu${cpu}/cache/index${index}`;
    const level = await tryText(`${directory}/level`);
    if (level === undefined) return undefined;
    if (!(Number(level) >= 3)) continue;
    const sharers = CpuSet.parse((await tryText(`${directory}/shared_cpu_list`)) ?? "");
    if (sharers.isEmpty || node.isWithin(sharers)) continue;
    const [lowest = cpu] = sharers;
    return naturalOr(await tryText(`${directory}/id`), lowest);
  }
  return undefined;
}

async function hugePagesOf(root: string, directory: string, text: Reads["text"]): Promise<ReadonlyMap<bigint, number>> {
  const pages = new Map<bigint, number>();
  const names = (await ifThere(readdir(`${root}${directory}/hugepages`))) ?? [];
  const sizes = names.flatMap((name) => numberIn(/^hugepages-(\d+)kB$/, name));
  for (const kibibytes of sizes.sort((a, b) => a - b)) {
    const count = Number(await text(`${directory}/hugepages/hugepages-${kibibytes}kB/nr_hugepages`));
    pages.set(BigInt(kibibytes) * 1024n, count * kibibytes * 1024);
  }
  return pages;
}

function numberIn(pattern: RegExp, text: string): readonly number[] {
  const digits = pattern.exec(text)?.[1];
  return digits === undefined ? [] : [Number(digits)];
}

function naturalOr(text: string | undefined, otherwise: number): number {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : otherwise;
}
