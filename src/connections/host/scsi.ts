import { readdir, readFile, readlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { ifThere } from "../../ground/base/index.ts";
import { readSwaps } from "./machine.ts";
import { readMounts } from "./mounts.ts";
import type { RunTool } from "./tools.ts";

/** A session with a storage target, and the SCSI host of the kernel that stands for it. */
export interface IscsiSession {
  readonly host: number;
  readonly name: string;
  /** `address:port`, as connected to and as configured. */
  readonly portals: readonly string[];
}

/** Disks behind SCSI hosts, multipath maps above them and names below `/dev/disk`, as the kernel and udev show them. */
export class ScsiDisks {
  readonly #root: string;
  readonly #run: RunTool;

  /** `root`: where `/sys` and `/dev` are; tests have their own. */
  constructor(run: RunTool, root = "/") {
    this.#run = run;
    this.#root = root;
  }

  async iscsiSessions(target: string): Promise<readonly IscsiSession[]> {
    const sessions: IscsiSession[] = [];
    for (const hostName of await this.#names("sys/class/iscsi_host")) {
      const host = numberAfter("host", hostName);
      if (host === undefined) continue;
      const device = join("sys/class/iscsi_host", hostName, "device");
      for (const name of await this.#names(device)) {
        if (!name.startsWith("session")) continue;
        const session = join(device, name);
        if ((await this.#read(join(session, "iscsi_session", name, "targetname"))) !== target) continue;
        sessions.push({ host, name, portals: await this.#portalsOf(session) });
      }
    }
    return sessions;
  }

  /** The disks (`sda`) of a logical unit, one for each session. */
  async iscsiDisks(target: string, lun: number): Promise<readonly string[]> {
    const disks: string[] = [];
    for (const { host, name } of await this.iscsiSessions(target)) {
      const unit = join(`sys/class/iscsi_host/host${host}/device`, name, `target${host}:0:0/${host}:0:0:${lun}`);
      const [disk] = await this.#names(join(unit, "block"));
      if (disk !== undefined) disks.push(disk);
    }
    return disks;
  }

  /** The disks of all units that the kernel knows of a session; whoever asked for them. */
  async disksOf({ host, name }: IscsiSession): Promise<readonly string[]> {
    const target = join(`sys/class/iscsi_host/host${host}/device`, name, `target${host}:0:0`);
    const disks: string[] = [];
    for (const unit of await this.#names(target)) disks.push(...(await this.#names(join(target, unit, "block"))));
    return disks;
  }

  /** Has the kernel look for one logical unit only: others are none of this node's business. */
  async scanLun(host: number, lun: number, signal: AbortSignal): Promise<void> {
    await this.#write(`sys/class/scsi_host/host${host}/scan`, `0 0 ${lun}`, signal);
  }

  /** Has the kernel look for disks everywhere. A host that can't is no reason not to ask the others. */
  async scanAll(signal: AbortSignal): Promise<void> {
    for (const host of await this.#names("sys/class/scsi_host")) {
      await this.#write(`sys/class/scsi_host/${host}/scan`, "- - -", signal).catch(() => signal.throwIfAborted());
    }
  }

  /** The kernel forgets a disk (`sda`); one that it does not have is forgotten already. */
  async forget(disk: string, signal: AbortSignal): Promise<void> {
    if ((await this.#names(`sys/block/${disk}/device`)).includes("delete")) {
      await this.#write(`sys/block/${disk}/device/delete`, "1", signal);
    }
  }

  /** Names in `/dev/disk/by-path` or `by-id`, and the disk (`sda`, `dm-0`) each leads to. */
  async named(by: "by-path" | "by-id"): Promise<ReadonlyMap<string, string>> {
    const directory = join(this.#root, "dev/disk", by);
    const disks = new Map<string, string>();
    for (const name of await ifThere(readdir(directory), [])) {
      const target = await ifThere(readlink(join(directory, name)).catch(() => undefined));
      if (target !== undefined) disks.set(name, basename(target));
    }
    return disks;
  }

  /** The multipath map (`dm-0`) that a disk is a part of; a volume of LVM that lies on it is none. */
  async mapOf(disk: string): Promise<string | undefined> {
    if (disk.startsWith("dm-")) return disk;
    for (const name of await this.#names(`sys/block/${disk}/holders`)) {
      if (!name.startsWith("dm-")) continue;
      const uuid = await this.#read(`sys/block/${name}/dm/uuid`);
      if (uuid === undefined || uuid.startsWith("mpath-")) return name;
    }
    return undefined;
  }

  /** Whether the disk (`sda`) or a partition of it is mounted, swapped to, or a part of something but these maps. */
  async isInUse(disk: string, maps: ReadonlySet<string>): Promise<boolean> {
    const [mounts, swaps] = await Promise.all([readMounts(), readSwaps()]);
    const partitions = (await this.#names(`sys/block/${disk}`)).filter((name) => name.startsWith(disk));
    const parts = [{ name: disk, path: disk }, ...partitions.map((name) => ({ name, path: `${disk}/${name}` }))];
    for (const { name, path } of parts) {
      if ((await this.#names(`sys/block/${path}/holders`)).some((holder) => !maps.has(holder))) return true;
      const number = await this.#read(`sys/block/${path}/dev`);
      // File systems on several disks have a number of their own.
      const isMounted = mounts.some(({ device, source }) => device === number || source === `/dev/${name}`);
      if (isMounted || swaps.includes(`/dev/${name}`)) return true;
    }
    return false;
  }

  async membersOf(map: string): Promise<readonly string[]> {
    return await this.#names(`sys/block/${map}/slaves`);
  }

  devicePath(disk: string): string {
    return join(this.#root, "dev", disk);
  }

  async #portalsOf(session: string): Promise<readonly string[]> {
    const portals = new Set<string>();
    for (const name of await this.#names(session)) {
      if (!name.startsWith("connection")) continue;
      const connection = join(session, name, "iscsi_connection", name);
      for (const prefix of ["", "persistent_"]) {
        const address = await this.#read(join(connection, `${prefix}address`));
        const port = await this.#read(join(connection, `${prefix}port`));
        if (address === undefined || port === undefined) continue;
        portals.add(address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
      }
    }
    return [...portals];
  }

  async #names(path: string): Promise<readonly string[]> {
    return await ifThere(readdir(join(this.#root, path)), []);
  }

  /** A session may end while it is looked at. */
  async #read(path: string): Promise<string | undefined> {
    const text = await readFile(join(this.#root, path), "utf8").catch(() => undefined);
    return text?.trim();
  }

  /** By a program: the kernel lets whoever writes wait for the storage. Its script has no text of anybody else's. */
  async #write(path: string, text: string, signal: AbortSignal): Promise<void> {
    await this.#run("sh", ["-c", 'printf %s "$1" > "$2"', "sh", text, join(this.#root, path)], signal);
  }
}

function numberAfter(prefix: string, name: string): number | undefined {
  const digits = name.slice(prefix.length);
  return name.startsWith(prefix) && /^\d+$/.test(digits) ? Number(digits) : undefined;
}
