import { callsUnderWay, loadSyscalls } from "../connections/host/index.ts";
import { processes } from "../ground/base/index.ts";

/** What Node lists while one of its threads is in a system call for it: files, and names that the system looks up. */
const inThread = /^(FSReq|GetAddrInfoReq|GetNameInfoReq)/;

/**
 * Ends the process if threads of it are in system calls, or start something that hangs. Node would wait for them at its exit, and a file server that is
 * dead never lets them go: a supervisor would wait for ever for a process that has said its last word.
 */
export async function exitDespiteThreads(code: number, activeResources: readonly string[]): Promise<void> {
  const { hangs } = await processes.farewell();
  const isHeldUp = hangs || callsUnderWay() > 0 || activeResources.some((name) => inThread.test(name));
  if (isHeldUp) (await loadSyscalls()).exitNow(code);
}
