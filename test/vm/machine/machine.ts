import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../src/ground/base/index.ts";
import { freePort } from "../../support/free-port.ts";
import { type Accelerator, findAccelerator } from "./accelerator.ts";
import { type Base, ensureBase, imageArchive } from "./base.ts";
import { type CommandResult, NoAnswerError, runInGuest } from "./command-line.ts";
import { readyWord } from "./guest-files.ts";
import { claimMachineDirectory } from "./machine-directories.ts";
import { makeNodeletDisk } from "./nodelet-disk.ts";
import { runProgram } from "./program.ts";
import { progress } from "./progress.ts";
import { type Hardware, type MachineFiles, qemuArguments } from "./qemu-arguments.ts";
import { VolatileDisk } from "./volatile-disk.ts";

export interface MachineOptions extends Partial<Hardware> {
  /** For the lines of progress. */
  readonly name: string;
  readonly swapMb?: number;
  /** Sizes of empty disks, /dev/vdd and on. */
  readonly extraDisksMb?: readonly number[];
  /** Its disks have write caches: what was written and not flushed may be lost in a power cut. */
  readonly volatileDisks?: boolean;
}

const never = new AbortController().signal;
// An emulated machine on a host that does ten other things; nothing waits this long unless something is broken.
const bootMs = 900_000;
const commandMs = 600_000;
const shutdownMs = 1_800_000;

/** A virtual machine with a disk of its own. Leaving it ends it and removes the disk. */
export class VirtualMachine implements AsyncDisposable {
  readonly name: string;
  readonly #hardware: Hardware;
  readonly #base: Base;
  readonly #files: MachineFiles;
  readonly #directory: string;
  readonly #accelerator: Accelerator;
  readonly #volatileDisks: readonly VolatileDisk[];
  #qemu: ChildProcess | undefined;
  #port = 0;

  private constructor(
    name: string,
    hardware: Hardware,
    base: Base,
    files: MachineFiles,
    directory: string,
    accelerator: Accelerator,
    volatileDisks: readonly VolatileDisk[],
  ) {
    this.name = name;
    this.#hardware = hardware;
    this.#base = base;
    this.#files = files;
    this.#directory = directory;
    this.#accelerator = accelerator;
    this.#volatileDisks = volatileDisks;
  }

  /** A fresh machine, booted. */
  static async start(options: MachineOptions): Promise<VirtualMachine> {
    return await VirtualMachine.#startOn(await preparedBase(), options);
  }

  static async #startOn(base: Base, options: MachineOptions): Promise<VirtualMachine> {
    const { name, swapMb = 512, extraDisksMb = [], volatileDisks = false, ...hardware } = options;
    const directory = await claimMachineDirectory(name);
    let disks: readonly VolatileDisk[] = [];
    try {
      const plain = await makeFiles(base, directory, swapMb, extraDisksMb);
      if (volatileDisks) disks = await served(plain);
      const files = disks.length === 0 ? plain : throughCaches(plain, disks);
      const accelerator = await findAccelerator(base);
      const machine = new VirtualMachine(
        name,
        { memoryMb: 1536, cpus: 2, ...hardware },
        base,
        files,
        directory,
        accelerator,
        disks,
      );
      await machine.boot();
      return machine;
    } catch (error) {
      for (const disk of disks) disk[Symbol.dispose]();
      await rm(directory, { recursive: true });
      throw error;
    }
  }

  /** Makes what all machines start from, unless it is kept: minutes for the first time. */
  static async prepare(): Promise<void> {
    await preparedBase();
  }

  /** Boots a machine that is off; resolves when commands can be run. */
  async boot(): Promise<void> {
    if (this.#qemu !== undefined) throw new Error("the machine is on already");
    const began = systemClock.monotonic();
    this.#port = await freePort();
    await writeFile(this.#files.console, "");
    const args = qemuArguments(this.#hardware, this.#base, this.#files, this.#accelerator, this.#port);
    // The kernel ends qemu with us, however we end.
    const qemu = spawn("setpriv", ["--pdeathsig", "KILL", "qemu-system-x86_64", ...args], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    this.#qemu = qemu;
    qemu.once("exit", () => {
      if (this.#qemu === qemu) this.#qemu = undefined;
    });
    await this.#untilReady(began + bootMs);
    const seconds = Math.round((systemClock.monotonic() - began) / 1000);
    progress(`${this.name}: booted in ${seconds} s (${this.#accelerator.accel})`);
  }

  /** Runs a shell command as root and returns its output; an error when its status is not 0. */
  async run(command: string, options: { readonly withinMs?: number; readonly input?: Buffer } = {}): Promise<string> {
    const { code, output } = await this.attempt(command, options);
    if (code !== 0) throw new Error(`in the machine, ended with ${code}: ${command}\n${output.slice(-4000)}`);
    return output.trimEnd();
  }

  async attempt(
    command: string,
    { withinMs = commandMs, input = Buffer.alloc(0) }: { readonly withinMs?: number; readonly input?: Buffer } = {},
  ): Promise<CommandResult> {
    return await runInGuest(this.#port, command, input, withinMs);
  }

  async putFile(path: string, content: string | Buffer, mode = 0o644): Promise<void> {
    const command = `mkdir -p "$(dirname '${path}')" && cat > '${path}' && chmod ${mode.toString(8)} '${path}'`;
    await this.run(command, { input: Buffer.from(content) });
  }

  /** Resolves when the command succeeds, which is tried in the machine; the error tells what it said last. */
  async until(what: string, command: string, withinMs = commandMs): Promise<void> {
    const seconds = Math.ceil(withinMs / 1000);
    const body = `end=$((SECONDS + ${seconds}))\nuntil said=$(${command}\n) ; do\n  [ $SECONDS -lt $end ] || { echo "$said"; exit 1; }\n  sleep 0.3\ndone`;
    const { code, output } = await this.attempt(body, { withinMs: withinMs + commandMs });
    if (code !== 0) throw new Error(`${what}: not within ${seconds} s. Last said:\n${output.slice(-4000)}`);
  }

  /**
   * Pulls the plug. Killed, qemu can't even finish the writes that it has begun. Of what volatile disks still had in
   * their caches, the blocks that `survives` picks are there afterwards. Returns how many are not.
   */
  async powerCut(survives: () => boolean = () => false): Promise<number> {
    const qemu = this.#qemu;
    if (qemu === undefined) return 0;
    const exited = once(qemu, "exit");
    qemu.kill("SIGKILL");
    await exited;
    return this.#volatileDisks.reduce((lost, disk) => lost + disk.losePower(survives), 0);
  }

  /** Lets `work` look at the root disk as a power cut now would leave it, while the machine goes on. */
  async withDiskAfterCut<T>(survives: () => boolean, work: (path: string) => Promise<T>): Promise<T> {
    const [root] = this.#volatileDisks;
    if (root === undefined) throw new Error("the machine has no volatile disks");
    const copy = join(this.#directory, "after-cut.img");
    try {
      await root.copyAfterCut(copy, survives);
      return await work(copy);
    } finally {
      await rm(copy, { force: true });
    }
  }

  async shutdown(): Promise<void> {
    await this.#leave("poweroff");
  }

  async reboot(): Promise<void> {
    await this.#leave("reboot");
    await this.boot();
  }

  async #leave(how: "poweroff" | "reboot"): Promise<void> {
    const began = systemClock.monotonic();
    await this.attempt(`systemctl --no-block ${how}`).catch((error: unknown) => {
      if (!(error instanceof NoAnswerError)) throw error;
    });
    while (this.#qemu !== undefined) {
      if (systemClock.monotonic() - began > shutdownMs) {
        const message = `no ${how} within ${shutdownMs / 1000} s; the console says last:\n${await this.#consoleEnd()}`;
        await this.powerCut();
        throw new Error(message);
      }
      await systemClock.sleep(100, never);
    }
    progress(`${this.name}: ${how} took ${Math.round((systemClock.monotonic() - began) / 1000)} s`);
  }

  /** The machine says so on its console: asking it all the time would cost it more than all the rest of its boot. */
  async #untilReady(deadline: number): Promise<void> {
    for (;;) {
      const console = await this.#consoleEnd();
      if (console.includes(readyWord)) break;
      const dead = this.#qemu === undefined || console.includes("Kernel panic");
      if (dead || systemClock.monotonic() > deadline) {
        await this.powerCut();
        throw new Error(`the machine ${dead ? "died while booting" : "does not get ready"}; its console:\n${console}`);
      }
      await systemClock.sleep(200, never);
    }
    await this.run("true");
  }

  async #consoleEnd(): Promise<string> {
    return (await readFile(this.#files.console, "utf8")).slice(-3000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.powerCut();
    for (const disk of this.#volatileDisks) disk[Symbol.dispose]();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Turns a disk just made into one that machines start from. */
  static async finishBase(base: Base): Promise<void> {
    await using machine = await VirtualMachine.#startOn(base, { name: "first boot" });
    await machine.until("containerd answers", "ctr version");
    await machine.run(`ctr --namespace k8s.io images import ${imageArchive} && rm ${imageArchive}`);
    await machine.shutdown();
    await runProgram("cp", ["--sparse=always", machine.#rootDisk, base.disk]);
  }

  get #rootDisk(): string {
    return join(this.#directory, "root.img");
  }
}

async function preparedBase(): Promise<Base> {
  return await ensureBase((base) => VirtualMachine.finishBase(base));
}

async function makeFiles(
  base: Base,
  directory: string,
  swapMb: number,
  extraDisksMb: readonly number[],
): Promise<MachineFiles> {
  const path = (name: string): string => join(directory, name);
  await runProgram("cp", ["--sparse=always", "--reflink=auto", base.disk, path("root.img")]);
  await makeNodeletDisk(path("nodelet.img"));
  await makeEmpty(path("swap.img"), swapMb);
  await runProgram("mkswap", [path("swap.img")]);
  const extra = extraDisksMb.map((_, at) => path(`extra-${at}.img`));
  for (const [at, sizeMb] of extraDisksMb.entries()) await makeEmpty(path(`extra-${at}.img`), sizeMb);
  return {
    console: path("console.log"),
    disks: [
      { path: path("root.img") },
      { path: path("nodelet.img"), readonly: true },
      ...[path("swap.img"), ...extra].map((disk) => ({ path: disk })),
    ],
  };
}

/** Those disks that can be written, each behind a cache. */
async function served({ disks }: MachineFiles): Promise<readonly VolatileDisk[]> {
  return await Promise.all(
    disks.filter(({ readonly }) => readonly !== true).map(({ path }) => VolatileDisk.serve(path)),
  );
}

function throughCaches(plain: MachineFiles, served: readonly VolatileDisk[]): MachineFiles {
  const sockets = new Map(served.map(({ path, socketPath }) => [path, socketPath]));
  return {
    ...plain,
    disks: plain.disks.map((disk) => {
      const socketPath = sockets.get(disk.path);
      return socketPath === undefined ? disk : { ...disk, socketPath };
    }),
  };
}

async function makeEmpty(path: string, sizeMb: number): Promise<void> {
  await writeFile(path, "", { mode: 0o600 });
  await truncate(path, sizeMb * 2 ** 20);
}
