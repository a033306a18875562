import { type ChildProcess, execFile, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { fileSystemUsage, foreignMountOf, readFileSystem } from "../../../connections/host/index.ts";
import { type Clock, FairLimiter, LinkedSignal, unlessAborted } from "../../../ground/base/index.ts";
import { type MountWork, mountWorkHere } from "../mounting/unmount.ts";
import type { VolumeUsage } from "../stats/disk-usage.ts";
import {
  type FileJobName,
  fileJobs,
  type InputOf,
  type JobAnswer,
  type JobMessage,
  type JobNews,
  type OutputOf,
} from "./file-jobs.ts";

export interface VolumeFilesPorts {
  readonly clock: Clock;
  /** The agent's directory: its disk is the node's own, like that of `/`. */
  readonly rootDir: string;
  /** How long a file system may be silent; tests are less patient. */
  readonly silenceMs?: number | undefined;
}

export interface FileTask {
  /** What will be looked at; where it lies decides where the work is done. Undefined: on a disk of the node's own. */
  readonly path: string | undefined;
  /** The pod on whose behalf. */
  readonly owner: string;
  readonly tell?: (news: JobNews) => void;
}

// As long as most file systems try before they call a server away; giving a thousand files to a group takes less.
const defaultSilenceMs = 60_000;
// Each process costs some 40 MB while it works, and pods rarely need one.
const processesAtOnce = 8;
const processesPerPod = 2;
const patienceMs = 5_000;
// Processes that hang on a dead file system can't be ended before it answers. So many may be left behind.
const mostStuck = 64;
const mostStuckPerPod = 8;

const entry = new URL(import.meta.url.endsWith(".ts") ? "./file-process.ts" : "./file-process.mjs", import.meta.url);

/** A file system does not answer. Only its own pods wait for it. */
export class SilentFileSystemError extends Error {
  override readonly name = "SilentFileSystemError";

  constructor(mountPoint: string, text: string) {
    super(`the file system at ${mountPoint} does not answer: ${text}; see whether its server is up`);
  }
}

interface Stuck {
  readonly mountPoint: string;
  readonly owner: string;
}

/**
 * Work on files of volumes. On the node's own disks it is done here, as ever. Whatever lies on something else may never
 * answer, and a system call that waits holds one of the few threads that all of the agent shares; so that work is done
 * in processes, which are given up after a while. A file system that one of them hangs on is not asked again until that
 * one has ended.
 */
export class VolumeFiles {
  readonly #ports: VolumeFilesPorts;
  readonly #processes: FairLimiter<string>;
  readonly #stuck = new Set<Stuck>();

  constructor(ports: VolumeFilesPorts) {
    this.#ports = ports;
    this.#processes = new FairLimiter(ports.clock, { limit: processesAtOnce, share: processesPerPod, patienceMs });
  }

  async run<Name extends FileJobName>(
    name: Name,
    input: InputOf<Name>,
    { path, owner, tell = () => {} }: FileTask,
    signal: AbortSignal,
  ): Promise<OutputOf<Name>> {
    const mountPoint = path === undefined ? undefined : await foreignMountOf(path, this.#ports.rootDir);
    if (mountPoint === undefined) {
      const work = fileJobs[name] as (
        given: InputOf<Name>,
        news: (news: JobNews) => void,
        stop: AbortSignal,
      ) => Promise<OutputOf<Name>>;
      return await work(input, tell, signal);
    }
    const begin = (alive: () => void): Begun<OutputOf<Name>> => startJob({ name, input }, tell, alive);
    return await this.#apart({ mountPoint, owner }, begin, signal);
  }

  /** How full the file system is that the path lies on. */
  async usage(path: string, owner: string, signal: AbortSignal): Promise<VolumeUsage> {
    const mountPoint = await foreignMountOf(path, this.#ports.rootDir);
    if (mountPoint === undefined) return readFileSystem(path);
    return await this.#apart({ mountPoint, owner }, () => startStat(path), signal);
  }

  /** Takes off mounts of a pod's. Who waits for a server or a disk that is away is a program, never the agent. */
  mountWork(owner: string, signal: AbortSignal): MountWork {
    const by = async (point: string, here: () => Promise<void>, program: string, args: string[]): Promise<void> => {
      const mountPoint = await foreignMountOf(point, this.#ports.rootDir);
      if (mountPoint === undefined) await here();
      else await this.#apart({ mountPoint, owner }, () => startProgram(program, [...args, "--", point]), signal);
    };
    return {
      // Without a look at what is mounted there, nor the file system's own helper, which would ask the server first.
      unmount: (point) => by(point, () => mountWorkHere.unmount(point), "umount", ["-c", "-i", "-n"]),
      makePrivate: (point) => by(point, () => mountWorkHere.makePrivate(point), "mount", ["--make-private"]),
    };
  }

  async #apart<Result>(
    where: Stuck,
    begin: (alive: () => void) => Begun<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    this.#refuseIfStuck(where);
    return await this.#processes.run(where.owner, () => this.#watch(where, begin, signal), signal);
  }

  async #watch<Result>(
    where: Stuck,
    begin: (alive: () => void) => Begun<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    this.#refuseIfStuck(where);
    const { clock, silenceMs = defaultSilenceMs } = this.#ports;
    using patience = new LinkedSignal(signal);
    const late = (): void =>
      patience.abort(new SilentFileSystemError(where.mountPoint, `nothing for ${silenceMs / 1_000} s`));
    let timer = clock.after(silenceMs, late);
    const { child, answer } = begin(() => {
      timer.cancel();
      timer = clock.after(silenceMs, late);
    });
    try {
      return await unlessAborted(answer, patience.signal);
    } finally {
      timer.cancel();
      if (patience.signal.aborted) this.#abandon(where, child);
    }
  }

  #abandon(where: Stuck, child: ChildProcess): void {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    this.#stuck.add(where);
    child.once("exit", () => this.#stuck.delete(where));
    child.kill("SIGKILL");
    // We may end before it does; what it could still tell must not keep us, either.
    child.unref();
    child.channel?.unref();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  }

  #refuseIfStuck({ mountPoint, owner }: Stuck): void {
    let ofOwner = 0;
    for (const stuck of this.#stuck) {
      if (stuck.mountPoint === mountPoint) {
        throw new SilentFileSystemError(mountPoint, "an earlier look still waits for it");
      }
      if (stuck.owner === owner) ofOwner++;
    }
    if (ofOwner >= mostStuckPerPod) {
      throw new SilentFileSystemError(
        mountPoint,
        `the pod has ${ofOwner} others that don't answer, and it was not asked`,
      );
    }
    if (this.#stuck.size >= mostStuck) {
      throw new SilentFileSystemError(mountPoint, `it is one of more than ${mostStuck}, and was not asked`);
    }
  }
}

interface Begun<Result> {
  readonly child: ChildProcess;
  readonly answer: Promise<Result>;
}

function startJob<Result>(message: JobMessage, tell: (news: JobNews) => void, alive: () => void): Begun<Result> {
  const child = fork(fileURLToPath(entry), { serialization: "advanced", stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const answer = new Promise<Result>((resolve, reject) => {
    child.on("message", (said: JobAnswer) => {
      alive();
      if ("news" in said) tell(said.news);
      else if ("result" in said) resolve(said.result as Result);
      else {
        const { name, message: text, code } = said.failure;
        reject(Object.assign(new Error(text), { name, ...(code !== undefined && { code }) }));
      }
    });
    child.once("error", reject);
    child.once("exit", (code, killedBy) =>
      reject(
        new Error(`the process for work on files ended with ${killedBy ?? `code ${code}`} before it had an answer`),
      ),
    );
    // One that could not be started has nobody to be told, and its error is on its way.
    if (child.pid === undefined) return;
    child.send(message, (error) => {
      if (error !== null) reject(error);
    });
  });
  return { child, answer };
}

function startProgram(program: string, args: readonly string[]): Begun<void> {
  let settle: (error: Error | null, said: string) => void = () => {};
  const answer = new Promise<void>((resolve, reject) => {
    settle = (error, said) => {
      if (error === null) resolve();
      else reject(new Error(`${program} ${args.join(" ")}: ${said.trim() || error.message}`, { cause: error }));
    };
  });
  const child = execFile(program, args, (error, _stdout, stderr) => settle(error, stderr));
  return { child, answer };
}

/** A small program: this is asked again and again. */
function startStat(path: string): Begun<VolumeUsage> {
  const format = "%S %b %f %a %c %d";
  let settle: (error: Error | null, text: string) => void = () => {};
  const answer = new Promise<VolumeUsage>((resolve, reject) => {
    settle = (error, text) => {
      const figures = text.trim().split(" ").map(Number);
      if (error !== null) reject(error);
      else if (figures.length !== 6 || figures.some(Number.isNaN)) reject(new Error(`stat -f answers "${text}"`));
      else resolve(usageFrom(figures.map(BigInt)));
    };
  });
  const child = execFile("stat", ["-f", "-c", format, "--", path], (error, stdout) => settle(error, stdout));
  return { child, answer };
}

function usageFrom([bsize = 0n, blocks = 0n, bfree = 0n, bavail = 0n, files = 0n, ffree = 0n]: bigint[]): VolumeUsage {
  return fileSystemUsage({ bsize, blocks, bfree, bavail, files, ffree });
}
