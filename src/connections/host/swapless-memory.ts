import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSyscalls, unmountFlags } from "./syscalls.ts";

/** Since this kernel, file systems in memory can be kept from swap. */
const since = { major: 6, minor: 4 };

/** Whether what pods keep in memory stays there, however much the machine swaps. Older kernels are tried: some have it. */
export async function canMountWithoutSwap(kernelVersion: string): Promise<boolean> {
  const [major = 0, minor = 0] = kernelVersion.split(".").map((part) => Number.parseInt(part, 10));
  if (major > since.major || (major === since.major && minor >= since.minor)) return true;
  const directory = await mkdtemp(join(tmpdir(), "nodelet-swap-"));
  try {
    const calls = await loadSyscalls();
    calls.mount("tmpfs", directory, "tmpfs", 0, "noswap");
    await calls.unmount(directory, unmountFlags.detach);
    return true;
  } catch {
    return false;
  } finally {
    await rmdir(directory);
  }
}
