import { type RunTool, ToolError } from "../../../connections/host/index.ts";

export interface DiskMount {
  readonly device: string;
  readonly target: string;
  readonly fsType: string;
  readonly options: readonly string[];
}

/** Mounts a disk by its file system, which is made first if the disk is empty and may be written to. */
export async function formatAndMount(
  { device, target, fsType, options }: DiskMount,
  run: RunTool,
  signal: AbortSignal,
): Promise<void> {
  const isReadOnly = options.includes("ro");
  const found = await contentOf(device, run, signal);
  if (found === "") {
    if (isReadOnly) {
      throw new Error(`cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`);
    }
    await run(`mkfs.${fsType}`, [...formatOptions(fsType), device], signal);
  } else if (!isReadOnly) await check(device, run, signal);
  try {
    await run("mount", ["-t", fsType, "-o", [...options, "defaults"].join(","), device, target], signal);
  } catch (error) {
    if (found === "" || found === fsType) throw error;
    throw new Error(`failed to mount the volume as ${JSON.stringify(fsType)}, it already contains ${found}`, {
      cause: error,
    });
  }
}

/** The file system on a disk; empty when there is nothing at all. */
export async function contentOf(device: string, run: RunTool, signal: AbortSignal): Promise<string> {
  let output: string;
  try {
    output = await run("blkid", ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device], signal);
  } catch (error) {
    if (error instanceof ToolError && error.exitCode === 2) return "";
    throw error;
  }
  const values = new Map(output.split("\n").map((line) => line.split("=", 2) as [string, string | undefined]));
  const fsType = values.get("TYPE");
  if (values.get("PTTYPE") !== undefined && fsType === undefined) return "unknown data, probably partitions";
  return fsType ?? "";
}

async function check(device: string, run: RunTool, signal: AbortSignal): Promise<void> {
  try {
    await run("fsck", ["-a", device], signal);
  } catch (error) {
    // 1: repaired. 4: beyond repair. What else it says is no reason not to try.
    if (error instanceof ToolError && error.exitCode === 4) {
      throw new Error(`'fsck' found errors on device ${device} but could not correct them: ${error.output}`, {
        cause: error,
      });
    }
    signal.throwIfAborted();
  }
}

function formatOptions(fsType: string): readonly string[] {
  if (fsType === "ext3" || fsType === "ext4") return ["-F", "-m0"];
  return fsType === "xfs" ? ["-f"] : [];
}
