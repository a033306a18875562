import type { CgroupLayout } from "../../../connections/host/index.ts";
import type { ExaminedWorld } from "../world.ts";
import { addressesOf } from "./names.ts";

/** The machine itself. */
export interface GroundFacts {
  readonly uid: number;
  /** Such as `6.1.0-28-amd64`. */
  readonly kernel: string;
  readonly cgroups: CgroupFacts;
  readonly swaps: readonly string[];
  readonly hostName: string;
  /** What the machine's own name leads to. */
  readonly hostAddresses: readonly string[] | { readonly problem: string };
  readonly machineId: string;
  readonly bootedAt: number | undefined;
  readonly now: number;
  /** We run in a container: much of the machine is its host's. */
  readonly inContainer: boolean;
  readonly hasSystemd: boolean;
}

export interface CgroupFacts {
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
  /** Controllers whose files can't be written to, because they are mounted read-only. */
  readonly readOnly: readonly string[];
  /** Those that can't be handed on to cgroups below: version 2 forbids it while processes are beside those. */
  readonly withheld: readonly string[];
}

export async function gatherGround(world: ExaminedWorld, signal: AbortSignal): Promise<GroundFacts> {
  const { machine, clock } = world;
  const read = async (path: string): Promise<string> => ((await machine.textIfThere(path)) ?? "").trim();
  const hostName = (await read("/proc/sys/kernel/hostname")).toLowerCase();
  const [kernel, cgroups, swaps, machineId, stat, inContainer, hasSystemd, hostAddresses] = await Promise.all([
    read("/proc/sys/kernel/osrelease"),
    readCgroups(world),
    read("/proc/swaps"),
    read("/etc/machine-id"),
    read("/proc/stat"),
    isContainer(world),
    machine.isThere("/run/systemd/system"),
    addressesOf(hostName, world, signal),
  ]);
  const booted = /^btime (\d+)$/m.exec(stat)?.[1];
  return {
    uid: world.uid,
    kernel,
    cgroups,
    swaps: swaps
      .split("\n")
      .slice(1)
      .map((line) => line.split(/\s+/)[0] ?? "")
      .filter((name) => name !== ""),
    hostName,
    hostAddresses,
    machineId,
    bootedAt: booted === undefined ? undefined : Number(booted) * 1000,
    now: clock.now(),
    inContainer,
    hasSystemd,
  };
}

async function isContainer({ machine }: ExaminedWorld): Promise<boolean> {
  for (const mark of ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"]) {
    if (await machine.isThere(mark)) return true;
  }
  return false;
}

async function readCgroups(world: ExaminedWorld): Promise<CgroupFacts> {
  const { root, machine } = world;
  const { readCgroupLayout, readMounts } = await import("../../../connections/host/index.ts");
  const layout: CgroupLayout = await readCgroupLayout(root);
  const isReadOnly = new Set(
    (await readMounts(root)).filter(({ options }) => options.includes("ro")).map(({ mountPoint }) => mountPoint),
  );
  if (layout.version === 2) {
    const readOnly = isReadOnly.has(layout.mountPoint) ? layout.controllers : [];
    return { version: 2, controllers: layout.controllers, readOnly, withheld: await withheldBy(world, layout) };
  }
  const enabled = enabledControllers((await machine.textIfThere("/proc/cgroups")) ?? "");
  const mounted = [...layout.mountPoints].filter(([name]) => !name.startsWith("name=") && enabled?.has(name) !== false);
  return {
    version: 1,
    controllers: mounted.map(([name]) => name),
    readOnly: mounted.filter(([, point]) => isReadOnly.has(point)).map(([name]) => name),
    withheld: [],
  };
}

/** Only the root of the machine itself has no type; that of a container obeys the rule. */
async function withheldBy(
  { machine }: ExaminedWorld,
  { mountPoint, controllers }: Extract<CgroupLayout, { readonly version: 2 }>,
): Promise<readonly string[]> {
  const read = async (file: string): Promise<string> =>
    ((await machine.textIfThere(`${mountPoint}/${file}`).catch(() => undefined)) ?? "").trim();
  if ((await read("cgroup.type")) === "" || (await read("cgroup.procs")) === "") return [];
  const handedOn = (await read("cgroup.subtree_control")).split(" ");
  return controllers.filter((name) => !handedOn.includes(name));
}

/** Lines of `name hierarchy cgroups enabled`; undefined: the kernel does not say. */
function enabledControllers(cgroups: string): ReadonlySet<string> | undefined {
  const rows = cgroups.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  if (rows.length === 0) return undefined;
  return new Set(
    rows
      .map((line) => line.split(/\s+/))
      .filter(([, , , on]) => on === "1")
      .map(([name = ""]) => name),
  );
}
