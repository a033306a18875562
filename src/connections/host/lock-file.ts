import type { Clock, Logger, TaskScope } from "../../ground/base/index.ts";
import { acquireLockFile, LockContention } from "./locks.ts";

/** Port: the end of the agent. */
export interface LockEnding {
  /** Aborted when the agent ends while it still waits. */
  readonly signal: AbortSignal;
  request(why: string): void;
}

export interface LockFileSettings {
  readonly lockFile: string;
  readonly exitOnLockContention: boolean;
}

/** What a process has of its lock file, however often the agent starts again in it. */
export class LockFileHold {
  isHeld = false;
  contention: LockContention | undefined;
}

/** Waits for the lock file, if there is one, and keeps it for the life of the process. */
export async function holdLockFile(
  { lockFile, exitOnLockContention }: LockFileSettings,
  { clock, log, scope, ending }: { clock: Clock; log: Logger; scope: TaskScope; ending: LockEnding },
  hold = new LockFileHold(),
): Promise<void> {
  if (lockFile === "") {
    if (!exitOnLockContention) return;
    throw new Error(
      "cannot exit on lock file contention: no lock file specified; add --lock-file or leave out --exit-on-lock-contention",
    );
  }
  if (!hold.isHeld) log.info("Acquiring file lock", { path: lockFile });
  const onWait = (): void => log.info("Another process holds the file lock; waiting for it", { path: lockFile });
  // Never released: the kernel does that when the process has ended.
  if (!hold.isHeld) await acquireLockFile(lockFile, { clock, onWait }, ending.signal);
  hold.isHeld = true;
  if (!exitOnLockContention) return;
  log.info("Watching for other processes that want the file lock", { path: lockFile });
  scope.spawn("lock contention", async (signal) => {
    try {
      hold.contention ??= await LockContention.watch(lockFile);
      await hold.contention.noticed(clock, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      log.error("Cannot watch the lock file", error, { path: lockFile });
    }
    ending.request("another process wants the lock file");
  });
}
