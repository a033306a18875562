import { loadSyscalls, mountFlags, mountOf, readMounts } from "../../../connections/host/index.ts";
import { table } from "../../../ground/base/index.ts";

const flagsByOption: Readonly<Record<string, number>> = table({
  ro: mountFlags.readOnly,
  nosuid: mountFlags.noSuid,
  nodev: mountFlags.noDev,
  noexec: mountFlags.noExec,
  noatime: mountFlags.noAtime,
  nodiratime: mountFlags.noDirAtime,
  relatime: mountFlags.relAtime,
});

/**
 * Shows a directory or device a second time. What the origin forbids stays forbidden, and the options may forbid more;
 * the kernel takes them only in a second step.
 */
export async function bindMount(source: string, target: string, options: readonly string[]): Promise<void> {
  const calls = await loadSyscalls();
  calls.mount(source, target, "", mountFlags.bind);
  const inherited = mountOf(target, await readMounts())?.options ?? [];
  let flags = 0;
  for (const option of [...inherited, ...options]) flags |= flagsByOption[option] ?? 0;
  if (!options.some((option) => flagsByOption[option] !== undefined)) return;
  calls.mount("none", target, "", mountFlags.bind | mountFlags.remount | flags);
}
