import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../ground/base/index.ts";
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

/** The label that the policy has for files of containers; empty where there is none, or no policy. */
export async function readContainerFileLabel(root = "/"): Promise<string> {
  const read = async (path: string): Promise<string> =>
    (await ifThere(readFile(join(root, "etc/selinux", path), "utf8"))) ?? "";
  const policy = /^SELINUXTYPE=(\S+)/m.exec(await read("config"))?.[1] ?? "targeted";
  return /^\s*file\s*=\s*"?([^"\s]+)"?/m.exec(await read(`${policy}/contexts/lxc_contexts`))?.[1] ?? "";
}

export async function setSelinuxLabel(path: string, label: string): Promise<void> {
  (await loadSyscalls()).setExtendedAttribute(path, "security.selinux", label);
}
