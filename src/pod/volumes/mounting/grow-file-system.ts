import type { RunTool } from "../../../connections/host/index.ts";
import { contentOf } from "./disk.ts";

/** Lets a mounted file system fill the disk it is on, which has grown. */
export async function growFileSystem(
  { device, mountPath }: { readonly device: string; readonly mountPath: string },
  run: RunTool,
  signal: AbortSignal,
): Promise<void> {
  const fsType = await contentOf(device, run, signal);
  switch (fsType) {
    case "ext3":
    case "ext4":
      await run("resize2fs", [device], signal);
      return;
    case "xfs":
      await run("xfs_growfs", ["-d", mountPath], signal);
      return;
    case "btrfs":
      await run("btrfs", ["filesystem", "resize", "max", mountPath], signal);
      return;
    default:
      throw new Error(`resize of format ${fsType} is not supported for device ${device} mounted at ${mountPath}`);
  }
}
