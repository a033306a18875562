import { readFile } from "node:fs/promises";
import { setImmediate as immediate } from "node:timers/promises";
import { loadSyscalls, mountFlags } from "./syscalls.ts";

export interface Mount {
  readonly mountPoint: string;
  /** `major:minor` of the file system. */
  readonly device: string;
  /** The directory of the file system that is mounted there. */
  readonly root: string;
  readonly fsType: string;
  readonly source: string;
  readonly options: readonly string[];
  readonly superOptions: readonly string[];
  readonly propagation: { readonly shared: boolean; readonly slave: boolean };
}

/** Read without a break: some milliseconds. Whoever may mount can make a hundred thousand. */
const linesAtOnce = 1_000;

/** The mounts of this process, in the order they were made. */
export async function readMounts(root = "/"): Promise<readonly Mount[]> {
  const lines = (await readFile(`${root}/proc/self/mountinfo`, "utf8")).split("\n");
  const mounts: Mount[] = [];
  for (let at = 0; at < lines.length; at += linesAtOnce) {
    if (at > 0) await immediate();
    for (const mount of parseMountInfo(lines.slice(at, at + linesAtOnce))) mounts.push(mount);
  }
  return mounts;
}

/** Lines of /proc/self/mountinfo: `36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/root rw`. */
export function parseMountInfo(lines: readonly string[]): readonly Mount[] {
  const mounts: Mount[] = [];
  for (const line of lines) {
    const [before = "", after] = line.split(" - ");
    const [, , device = "", mountRoot, mountPoint, options, ...tags] = before.split(" ");
    const [fsType, source, superOptions] = (after ?? "").split(" ");
    if (mountRoot === undefined || mountPoint === undefined || fsType === undefined || fsType === "") continue;
    mounts.push({
      mountPoint: decodeOctal(mountPoint),
      device,
      root: decodeOctal(mountRoot),
      fsType,
      source: decodeOctal(source ?? ""),
      options: (options ?? "").split(","),
      superOptions: (superOptions ?? "").split(","),
      propagation: {
        shared: tags.some((tag) => tag.startsWith("shared:")),
        slave: tags.some((tag) => tag.startsWith("master:")),
      },
    });
  }
  return mounts;
}

/** The mount that holds the path; of mounts on the same point the last one covers the others. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const point = mount.mountPoint;
    const holds = point === "/" || path === point || path.startsWith(`${point}/`);
    if (holds && (best === undefined || point.length >= best.mountPoint.length)) best = mount;
  }
  return best;
}

/**
 * Makes mounts below the directory visible to containers that share it. A directory on a shared mount is left as it
 * is; any other becomes a shared mount of its own.
 */
export async function makeShared(directory: string): Promise<"was shared" | "made shared"> {
  const mount = mountOf(directory, await readMounts());
  if (mount === undefined) throw new Error(`could not find mount point for "${directory}"`);
  if (mount.propagation.shared) return "was shared";
  const calls = await loadSyscalls();
  try {
    calls.mount(directory, directory, "", mountFlags.bind);
  } catch (error) {
    throw new Error(`failed to bind-mount ${directory}`, { cause: error });
  }
  try {
    calls.mount(directory, directory, "", mountFlags.shared | mountFlags.recursive);
  } catch (error) {
    throw new Error(`failed to make ${directory} rshared`, { cause: error });
  }
  return "made shared";
}

function decodeOctal(field: string): string {
  if (!field.includes("\\")) return field;
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
