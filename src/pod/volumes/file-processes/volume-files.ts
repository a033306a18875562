import { fileSystemUsage, foreignMountOf, readFileSystem } from "../../../connections/host/index.ts";
import {
  type Clock,
  FairLimiter,
  LinkedSignal,
  runForResult,
  startOwnProcess,
  waitFor,
} from "../../../ground/base/index.ts";
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
const longestToolAnswer = 64 * 1024;

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
    const message = { name, input };
    return await this.#apart({ mountPoint, owner }, (life) => runJob(message, tell, life), signal);
  }

  /** How full the file system is that the path lies on. */
  async usage(path: string, owner: string, signal: AbortSignal): Promise<VolumeUsage> {
    const mountPoint = await foreignMountOf(path, this.#ports.rootDir);
    if (mountPoint === undefined) return readFileSystem(path);
    return await this.#apart({ mountPoint, owner }, (life) => runStat(path, life), signal);
  }

  /** Takes off mounts of a pod's. Who waits for a server or a disk that is away is a program, never the agent. */
  mountWork(owner: string, signal: AbortSignal): MountWork {
    const by = async (point: string, here: () => Promise<void>, program: string, args: string[]): Promise<void> => {
      const mountPoint = await foreignMountOf(point, this.#ports.rootDir);
      if (mountPoint === undefined) await here();
      else await this.#apart({ mountPoint, owner }, (life) => runTool(program, [...args, "--", point], life), signal);
    };
    return {
      // Without a look at what is mounted there, nor the file system's own helper, which would ask the server first.
      unmount: (point) => by(point, () => mountWorkHere.unmount(point), "umount", ["-c", "-i", "-n"]),
      makePrivate: (point) => by(point, () => mountWorkHere.makePrivate(point), "mount", ["--make-private"]),
    };
  }

  async #apart<Result>(
    where: Stuck,
    begin: (life: ProcessLife) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    this.#refuseIfStuck(where);
    return await this.#processes.run(where.owner, () => this.#watch(where, begin, signal), signal);
  }

  async #watch<Result>(
    where: Stuck,
    begin: (life: ProcessLife) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    this.#refuseIfStuck(where);
    const { clock, silenceMs = defaultSilenceMs } = this.#ports;
    using patience = new LinkedSignal(signal);
    const late = (): void =>
      patience.abort(new SilentFileSystemError(where.mountPoint, `nothing for ${silenceMs / 1_000} s`));
    let timer = clock.after(silenceMs, late);
    const alive = (): void => {
      timer.cancel();
      timer = clock.after(silenceMs, late);
    };
    let isGone = false;
    const gone = (): void => {
      isGone = true;
      this.#stuck.delete(where);
    };
    try {
      return await begin({ alive, gone, signal: patience.signal });
    } finally {
      timer.cancel();
      // Killed, it ends when its file system lets it.
      if (patience.signal.aborted && !isGone) this.#stuck.add(where);
    }
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

/** A process that may hang. */
interface ProcessLife {
  /** To be called at each sign of life. */
  readonly alive: () => void;
  /** To be called when the process has really ended, or could not be started. */
  readonly gone: () => void;
  /** It is given up. */
  readonly signal: AbortSignal;
}

async function runJob<Result>(
  input: JobMessage,
  tell: (news: JobNews) => void,
  { alive, gone, signal }: ProcessLife,
): Promise<Result> {
  return await waitFor<Result>(signal, (done, fail) => {
    const message = (said: JobAnswer): void => {
      alive();
      if ("news" in said) tell(said.news);
      else if ("result" in said) done(said.result as Result);
      else {
        const { name, message: text, code } = said.failure;
        fail(Object.assign(new Error(text), { name, ...(code !== undefined && { code }) }));
      }
    };
    const ended = (how: string): void =>
      fail(new Error(`the process for work on files ended with ${how} before it had an answer`));
    const child = startOwnProcess(
      entry,
      { input },
      { message: (said) => message(said as JobAnswer), result: ended, notStarted: fail, failure: fail, gone },
    );
    return () => {
      // It ends by itself when it has answered.
      if (signal.aborted) child.end();
    };
  });
}

async function runTool(program: string, args: readonly string[], life: ProcessLife): Promise<string> {
  const { exitCode, killedBy, stdout, stderr } = await runForResult(
    { program, args, longestAnswer: longestToolAnswer, onGone: life.gone },
    life.signal,
  );
  if (exitCode === 0) return stdout;
  const how = killedBy === undefined ? `exited with ${exitCode}` : `was ended by ${killedBy}`;
  throw new Error(`${program} ${args.join(" ")}: ${stderr.trim() || how}`);
}

/** A small program: this is asked again and again. */
async function runStat(path: string, life: ProcessLife): Promise<VolumeUsage> {
  const format = "%S %b %f %a %c %d";
  const text = await runTool("stat", ["-f", "-c", format, "--", path], life);
  const figures = text.trim().split(" ").map(Number);
  if (figures.length !== 6 || figures.some(Number.isNaN)) throw new Error(`stat -f answers "${text}"`);
  return usageFrom(figures.map(BigInt));
}

function usageFrom([bsize = 0n, blocks = 0n, bfree = 0n, bavail = 0n, files = 0n, ffree = 0n]: bigint[]): VolumeUsage {
  return fileSystemUsage({ bsize, blocks, bfree, bavail, files, ffree });
}
