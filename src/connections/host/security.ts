import { readFile, stat } from "node:fs/promises";
import { readMounts } from "./mounts.ts";
import { loadSyscalls } from "./syscalls.ts";

export async function isAppArmorEnabled(root = "/"): Promise<boolean> {
  try {
    await stat(`${root}/sys/kernel/security/apparmor`);
    return (await readFile(`${root}/sys/module/apparmor/parameters/enabled`, "utf8")).startsWith("Y");
  } catch {
    return false;
  }
}

/** SELinux counts as enabled when its file system is mounted and a policy has given this process a label. */
export async function isSelinuxEnabled(root = "/"): Promise<boolean> {
  if (!(await readMounts(root)).some((mount) => mount.fsType === "selinuxfs")) return false;
  try {
    const label = (await readFile(`${root}/proc/self/attr/current`, "utf8")).replace(/\0$/, "").trim();
    return label !== "kernel";
  } catch {
    return false;
  }
}

export async function setSelinuxLabel(path: string, label: string): Promise<void> {
  (await loadSyscalls()).setExtendedAttribute(path, "security.selinux", label);
}
