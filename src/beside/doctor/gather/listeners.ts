import type { ExaminedWorld } from "../world.ts";

/** A TCP port that somebody listens on. */
export interface Listener {
  readonly port: number;
  readonly isOurs: boolean;
}

const listening = "0A";
const mostDescriptors = 4_096;

/** `pid`: that of the agent, if it runs. */
export async function readListeners({ machine }: ExaminedWorld, pid: number | undefined): Promise<readonly Listener[]> {
  const own = pid === undefined ? new Set<string>() : await socketsOf(machine, pid);
  const found: Listener[] = [];
  for (const file of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const content = (await machine.textIfThere(file, 4 * 1024 * 1024).catch(() => undefined)) ?? "";
    for (const line of content.split("\n").slice(1)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      if (state !== listening) continue;
      found.push({ port: Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16), isOurs: own.has(inode) });
    }
  }
  return found;
}

async function socketsOf(machine: ExaminedWorld["machine"], pid: number): Promise<ReadonlySet<string>> {
  const inodes = new Set<string>();
  for (const name of await machine.names(`/proc/${pid}/fd`, mostDescriptors).catch(() => [])) {
    const inode = /^socket:\[(\d+)\]$/.exec((await machine.link(`/proc/${pid}/fd/${name}`)) ?? "")?.[1];
    if (inode !== undefined) inodes.add(inode);
  }
  return inodes;
}
