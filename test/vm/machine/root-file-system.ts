import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { places } from "./places.ts";
import { runProgram } from "./program.ts";
import { progress } from "./progress.ts";

/** Debian packages of the guest: init and bus, kernel, container runtime, what the agent needs, what tests look with. */
const packages = [
  ...["systemd", "systemd-sysv", "dbus", "udev", "kmod", "linux-image-cloud-amd64"],
  ...["containerd", "runc", "containernetworking-plugins", "iptables"],
  ...["busybox-static", "iproute2", "procps", "libstdc++6", "curl", "numactl"],
  ...["open-iscsi", "tgt"],
];

/** Of no use in there, and half of the disk. */
const useless = ["usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists"];

/** The guest's Debian as packages leave it; made once (minutes), then kept. */
export async function rootFileSystem(): Promise<{ readonly path: string; readonly key: string }> {
  const suite = process.env["NODELET_VM_SUITE"] ?? (await ownSuite());
  const key = createHash("sha256")
    .update(JSON.stringify([suite, packages, useless]))
    .digest("hex")
    .slice(0, 12);
  const path = join(places.rootFileSystems, key);
  if (existsSync(path)) return { path, key };
  await forgetOthers(places.rootFileSystems);
  const mirror = process.env["NODELET_VM_MIRROR"] ?? (await mirrorOf(suite));
  progress(`making the root file system from packages of ${suite}: 2 to 5 minutes, once`);
  const unfinished = `${path}.unfinished`;
  await runProgram("debootstrap", ["--variant=minbase", `--include=${packages.join(",")}`, suite, unfinished, mirror]);
  for (const directory of useless) await rm(join(unfinished, directory), { recursive: true, force: true });
  await writeFile(join(unfinished, "etc/machine-id"), "");
  await rename(unfinished, path);
  return { path, key };
}

/** Removes what was kept for other inputs, and what was never finished. */
export async function forgetOthers(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true });
}

/** This machine's own release: what apt knows here is what debootstrap can have. */
async function ownSuite(): Promise<string> {
  const name = /^VERSION_CODENAME=(\S+)$/m.exec(await readFile("/etc/os-release", "utf8"))?.[1];
  if (name === undefined)
    throw new Error("this is no Debian release with a name; set NODELET_VM_SUITE, such as bookworm");
  return name;
}

async function mirrorOf(suite: string): Promise<string> {
  const listed = await runProgram("apt-get", ["indextargets", "--format", "$(REPO_URI)", `Codename: ${suite}`]);
  const [mirror] = listed.split("\n").filter((line) => line !== "");
  if (mirror !== undefined) return mirror;
  throw new Error(`apt knows no mirror of ${suite} here; run "apt-get update" or set NODELET_VM_MIRROR`);
}
