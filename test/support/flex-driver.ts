import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../src/ground/base/index.ts";

/**
 * A FlexVolume driver as people write them: a shell script. It notes each call in `calls`, mounts a tmpfs for a pod and
 * for a device, and does in place of that what `cases` says, lines of a shell's `case` on the command.
 */
export class TestFlexDriver {
  readonly name: string;
  readonly program: string;
  readonly #log: string;

  constructor(pluginDir: string, name = "example.com/disk") {
    this.name = name;
    const directory = join(pluginDir, name.replaceAll("/", "~"));
    this.program = join(directory, name.split("/").at(-1) ?? "");
    this.#log = join(directory, ".calls");
  }

  /** Puts the driver there, or another one in its place, whole. */
  async install({ capabilities = {}, cases = "" }: { capabilities?: object; cases?: string } = {}): Promise<void> {
    const directory = join(this.program, "..");
    await mkdir(directory, { recursive: true });
    const init = JSON.stringify({ status: "Success", capabilities: { attach: false, ...capabilities } });
    const script = `#!/bin/sh
echo "$@" >> '${this.#log}'
ok() { echo '{"status": "Success"}'; exit 0; }
no() { echo '{"status": "Not supported"}'; exit 1; }
case "$1" in
${cases}
init) echo '${init}';;
mount) mount -t tmpfs flex "$2" && ok;;
mountdevice) mount -t tmpfs flex "$2" && ok;;
unmount|unmountdevice) umount "$2" 2>/dev/null; ok;;
*) no;;
esac
`;
    const unfinished = join(directory, ".unfinished");
    await writeFile(unfinished, script);
    await chmod(unfinished, 0o755);
    await rename(unfinished, this.program);
  }

  /** What it was asked so far; `init` is left out. */
  async calls(): Promise<readonly string[]> {
    const text = (await ifThere(readFile(this.#log, "utf8"))) ?? "";
    return text.split("\n").filter((line) => line !== "" && line !== "init");
  }

  async commands(): Promise<readonly string[]> {
    return (await this.calls()).map((line) => line.split(" ")[0] ?? "");
  }
}
