import { loadSyscalls } from "./syscalls.ts";

/** Sets how many files this process may have open, now and at most. */
export async function setOpenFileLimit(maxOpenFiles: number): Promise<void> {
  const limit = BigInt(maxOpenFiles);
  const calls = await loadSyscalls();
  try {
    calls.setOpenFileLimit({ soft: limit, hard: limit });
  } catch (error) {
    const { soft, hard } = calls.getOpenFileLimit();
    throw new Error(`Cannot set the limit of open files to ${maxOpenFiles}; it stays at ${soft} (at most ${hard})`, {
      cause: error,
    });
  }
}
