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
    const [file, path] = [join(directory, "disk.img"), join(directory, "disk")];
    execFileSync("truncate", ["-s", "16M", file]);
    execFileSync("mkfs.ext4", ["-q", "-F", file]);
    mkdirSync(path);
    execFileSync("mount", ["-o", "loop", file, path]);
    return new LoopDisk(path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    execFileSync("umount", ["-l", this.path]);
  }
}
