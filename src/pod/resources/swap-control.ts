import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CgroupLayout } from "../../connections/host/index.ts";

/** Whether this kernel can limit swap per cgroup; `root` lets tests read a made-up machine. */
export async function canControlSwap(layout: CgroupLayout, root = ""): Promise<boolean> {
  try {
    if (layout.version === 1) {
      const memory = layout.mountPoints.get("memory");
      if (memory === undefined) return false;
      await access(`${root}${join(memory, "memory.memsw.limit_in_bytes")}`);
      return true;
    }
    // The top of the tree has no such file; the cgroup we live in does, if there is one.
    const own = /^0::(.*)$/m.exec(await readFile(`${root}/proc/self/cgroup`, "utf8"))?.[1] ?? "/";
    await access(`${root}${join(layout.mountPoint, own, "memory.swap.max")}`);
    return true;
  } catch {
    return false;
  }
}
