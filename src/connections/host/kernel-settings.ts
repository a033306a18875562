import { readFile, writeFile } from "node:fs/promises";
import { type Logger, messageOf } from "../../ground/base/index.ts";
import { kernelDefaults } from "../../ground/model/index.ts";

export interface KernelTuning {
  /** What differs is an error instead of being changed. */
  readonly protect: boolean;
  /** What can't be changed from within a user namespace is left as it is. */
  readonly mayLackRights: boolean;
}

/** Sets the kernel up for pods, or throws with all that is wrong; `root` lets tests have a machine of their own. */
export async function tuneKernel({ protect, mayLackRights }: KernelTuning, log: Logger, root = ""): Promise<void> {
  const isForgiven = mayLackRights && (await isInUserNamespace(root));
  const problems: string[] = [];
  for (const [name, value] of kernelDefaults) {
    const path = `${root}/proc/sys/${name}`;
    try {
      const present = Number((await readFile(path, "utf8")).trim());
      if (present === value) continue;
      if (protect) {
        problems.push(`invalid kernel flag: ${name}, expected value: ${value}, actual value: ${present}`);
        continue;
      }
      await writeFile(path, String(value));
      log.info("Changed a setting of the kernel", { name, from: present, to: value });
    } catch (error) {
      if (isForgiven) log.info("Cannot change a setting of the kernel", { name, reason: messageOf(error) });
      else problems.push(`${name}: ${messageOf(error)}`);
    }
  }
  if (problems.length > 0) throw new Error(`The kernel is not set up for pods: ${problems.join("; ")}`);
}

/** The first one of a machine has all ids. */
async function isInUserNamespace(root: string): Promise<boolean> {
  const map = await readFile(`${root}/proc/self/uid_map`, "utf8").catch(() => "");
  return map !== "" && !/^\s*0\s+0\s+4294967295\s*$/.test(map);
}
