import { constants } from "node:fs";
import { type FileHandle, open, realpath, stat } from "node:fs/promises";
import { dirname, sep } from "node:path";
import type { ConfigIo } from "../../ground/config/index.ts";

const mostBytes = 2 ** 20;
const writableByOthers = 0o022;

export interface Guard {
  /** The user that the agent runs as. */
  readonly uid: number;
  /** Directories whose content belongs to pods. */
  readonly podsDirs: readonly string[];
}

/**
 * Files as the agent reads them while it runs: whoever can write to what is read here commands the node, and nobody
 * restarts the agent to make it so. Only what none but root can write to is taken, and nothing that lies in a volume.
 */
export function guardedIo(io: ConfigIo, guard: Guard): ConfigIo {
  return {
    ...io,
    async readFile(path) {
      const real = await realpath(path);
      for (const directory of guard.podsDirs) {
        // The root directory may be a link itself.
        const pods = await realpath(directory).catch(() => directory);
        if (real.startsWith(`${pods}${sep}`)) throw new Error(`it leads into "${directory}", which belongs to pods`);
      }
      refuseOthers(dirname(real), await stat(dirname(real)), guard);
      // Without O_NONBLOCK, a pipe in place of the file would hold up a thread for ever.
      await using file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const stats = await file.stat();
      if (!stats.isFile()) throw new Error("it is no file");
      refuseOthers(real, stats, guard);
      if (stats.size > mostBytes) throw new Error(`it is longer than ${mostBytes} bytes`);
      return await readAtMost(file, mostBytes);
    },
  };
}

/** Refuses a directory that others than root can write to, or that belongs to pods: who writes here commands the node. */
export async function refuseShared(directory: string, guard: Guard): Promise<void> {
  refuseOthers(directory, await stat(directory), guard);
  const real = (path: string): Promise<string> => realpath(path).catch(() => path);
  for (const podsDir of guard.podsDirs) {
    if ((await real(directory)).startsWith(`${await real(podsDir)}${sep}`)) {
      throw new Error(`"${directory}" lies in "${podsDir}", which belongs to pods`);
    }
  }
}

function refuseOthers(path: string, stats: { readonly uid: number; readonly mode: number }, { uid }: Guard): void {
  if (stats.uid !== 0 && stats.uid !== uid) throw new Error(`"${path}" belongs to user ${stats.uid}, not to root`);
  if ((stats.mode & writableByOthers) !== 0) {
    throw new Error(`"${path}" can be written to by others than its owner (mode ${(stats.mode & 0o7777).toString(8)})`);
  }
}

/** A file may grow while it is read. */
async function readAtMost(file: FileHandle, most: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(most + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    length += bytesRead;
    if (length > most) throw new Error(`it is longer than ${most} bytes`);
    if (bytesRead === 0) return buffer.subarray(0, length);
  }
}
