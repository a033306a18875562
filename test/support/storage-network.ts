import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type RunTool, runTool, ToolError } from "../../src/connections/host/index.ts";
import { ifThere } from "../../src/ground/base/index.ts";

/**
 * Stands in for a storage network that this machine's kernel has no drivers for: `iscsiadm`, `multipath` and what the
 * kernel shows below `/sys` and `/dev` in a directory of its own. Disks are real ones, by path. All other programs run.
 */
export class StorageNetwork {
  readonly root: string;
  /** What was run of the programs that are stood in for, in order. */
  readonly calls: string[] = [];
  /** Real disks behind logical units. */
  readonly disks = new Map<number, string>();
  /** Portals that answer; undefined: all. */
  reachable: ReadonlySet<string> | undefined;
  /** Runs before a call; throws to have it fail. */
  onCall: (call: string) => void | Promise<void> = () => {};
  /** The name of a multipath map above all disks, if there is to be one. */
  map: string | undefined;
  #sessions = 0;
  #letters = 0;

  constructor(root: string) {
    this.root = root;
  }

  readonly run: RunTool = async (program, args, signal) => {
    if (program === "sh") return await this.#kernel(args[3] ?? "", args[4] ?? "");
    if (program !== "iscsiadm" && program !== "multipath") return await runTool(program, args, signal);
    const call = [program, ...args].join(" ");
    await this.onCall(call);
    this.calls.push(call);
    return program === "iscsiadm" ? await this.#iscsiadm(args) : "";
  };

  /** A session that was begun by somebody else. */
  async logIn(portal: string, target: string): Promise<void> {
    const number = ++this.#sessions;
    const session = join(this.root, `sys/class/iscsi_host/host${number}/device/session${number}`);
    const connection = join(session, `connection${number}:0/iscsi_connection/connection${number}:0`);
    await put(join(session, `iscsi_session/session${number}/targetname`), `${target}\n`);
    const [address = "", port = ""] = portal.split(":");
    for (const prefix of ["", "persistent_"]) {
      await put(join(connection, `${prefix}address`), `${address}\n`);
      await put(join(connection, `${prefix}port`), `${port}\n`);
    }
    await put(join(this.root, `sys/class/scsi_host/host${number}/scan`), "");
    await put(join(session, "portal"), portal);
  }

  /** `portal target` of each. */
  async sessions(): Promise<readonly string[]> {
    return (await this.#sessionList()).map(({ portal, target }) => `${portal} ${target}`).sort();
  }

  /** A disk that is there under a name of `/dev/disk`, without a session. */
  async show(by: "by-path" | "by-id", name: string, device: string): Promise<string> {
    const disk = `sd${String.fromCharCode(97 + this.#letters++)}`;
    await mkdir(join(this.root, "dev/disk", by), { recursive: true });
    await symlink(device, join(this.root, "dev", disk));
    await symlink(`../../${disk}`, join(this.root, "dev/disk", by, name));
    await put(join(this.root, `sys/block/${disk}/device/delete`), "");
    if (this.map !== undefined) {
      await mkdir(join(this.root, `sys/block/${disk}/holders/${this.map}`), { recursive: true });
      await mkdir(join(this.root, `sys/block/${this.map}/slaves/${disk}`), { recursive: true });
      await ifThere(rm(join(this.root, "dev", this.map)));
      await symlink(device, join(this.root, "dev", this.map));
    }
    return disk;
  }

  /** Names of `/dev/disk/by-path` and `by-id`. */
  async shown(): Promise<readonly string[]> {
    const names = ["by-path", "by-id"].map((by) => ifThere(readdir(join(this.root, "dev/disk", by)), []));
    return (await Promise.all(names)).flat().sort();
  }

  async #sessionList() {
    const found: { host: string; directory: string; portal: string; target: string }[] = [];
    const hosts = join(this.root, "sys/class/iscsi_host");
    for (const host of await ifThere(readdir(hosts), [])) {
      for (const name of await ifThere(readdir(join(hosts, host, "device")), [])) {
        const directory = join(hosts, host, "device", name);
        const target = (await readFile(join(directory, `iscsi_session/${name}/targetname`), "utf8")).trim();
        found.push({ host, directory, target, portal: await readFile(join(directory, "portal"), "utf8") });
      }
    }
    return found;
  }

  async #iscsiadm(args: readonly string[]): Promise<string> {
    const after = (flag: string): string => args[args.indexOf(flag) + 1] ?? "";
    const [portal, target] = [after("-p"), after("-T")];
    const fails = (code: number, said: string): never => {
      throw new ToolError("iscsiadm", args, code, said, undefined);
    };
    if (after("-o") === "show") return "# BEGIN RECORD\niface.iscsi_ifacename = default\niface.transport_name = tcp\n";
    if (args.includes("--discover") && this.reachable?.has(portal) === false) fails(4, "connection failure");
    const open = (await this.#sessionList()).find((one) => one.portal === portal && one.target === target);
    if (args.includes("--login")) {
      if (open !== undefined) fails(15, "session exists");
      await this.logIn(portal, target);
    }
    if (args.includes("--logout")) {
      if (open === undefined) fails(21, "No matching sessions found");
      else await rm(join(this.root, "sys/class/iscsi_host", open.host), { recursive: true });
    }
    return "";
  }

  /** What the kernel does when somebody writes to one of its files. */
  async #kernel(text: string, path: string): Promise<string> {
    const file = path.slice(this.root.length);
    this.calls.push(`${file} < ${text}`);
    if (file.endsWith("/device/delete")) await this.#forget(basename(dirname(dirname(file))));
    if (!file.endsWith("/scan") || text === "- - -") return "";
    const host = basename(dirname(file));
    const lun = Number(text.split(" ")[2]);
    const session = (await this.#sessionList()).find((one) => one.host === host);
    const device = this.disks.get(lun);
    if (session === undefined || device === undefined) return "";
    const number = host.slice("host".length);
    const unit = join(session.directory, `target${number}:0:0/${number}:0:0:${lun}/block`);
    if ((await ifThere(readdir(unit), [])).length > 0) return "";
    const name = `ip-${session.portal}-iscsi-${session.target}-lun-${lun}`;
    await mkdir(join(unit, await this.show("by-path", name, device)), { recursive: true });
    return "";
  }

  async #forget(disk: string): Promise<void> {
    for (const by of ["by-path", "by-id"]) {
      const directory = join(this.root, "dev/disk", by);
      for (const name of await ifThere(readdir(directory), [])) {
        if (basename(await readlink(join(directory, name))) === disk) await rm(join(directory, name));
      }
    }
    await rm(join(this.root, "dev", disk));
    await rm(join(this.root, "sys/block", disk), { recursive: true });
    for (const { host, directory } of await this.#sessionList()) {
      const target = join(directory, `target${host.slice(4)}:0:0`);
      for (const unit of await ifThere(readdir(target), [])) {
        if ((await readdir(join(target, unit, "block"))).includes(disk))
          await rm(join(target, unit), { recursive: true });
      }
    }
  }
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
