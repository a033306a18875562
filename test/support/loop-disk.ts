import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

/** A disk with a file system of its own. Throws where there are no loop devices. */
export class LoopDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async at(directory: string): Promise<LoopDisk> {
    return LoopDisk.mountOn(join(directory, "disk"), { megabytes: 16 });
  }

  /** Mounts a new disk on a directory; its file lies beside that. */
  static mountOn(
    path: string,
    { megabytes, inodes }: { readonly megabytes: number; readonly inodes?: number },
  ): LoopDisk {
    const file = `${path}.img`;
    execFileSync("truncate", ["-s", `${megabytes}M`, file]);
    execFileSync("mkfs.ext4", ["-q", "-F", ...(inodes === undefined ? [] : ["-N", String(inodes)]), file]);
    mkdirSync(path, { recursive: true });
    execFileSync("mount", ["-o", "loop", file, path]);
    return new LoopDisk(path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    execFileSync("umount", ["-l", this.path]);
  }
}
