import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildBaseImages } from "../../../src/beside/cli/machine/index.ts";
import { ociArchive } from "../../../src/beside/cli/machine/oci-image.ts";
import { enabledUnits, guestFiles, maskedUnits } from "./guest-files.ts";
import { places } from "./places.ts";
import { runProgram } from "./program.ts";
import { progress } from "./progress.ts";
import { forgetOthers, rootFileSystem } from "./root-file-system.ts";
import { makeStartUpFiles } from "./start-up-files.ts";

/** What every machine starts from. */
export interface Base {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
}

const diskBytes = 6 * 2 ** 30;
/** Where the first boot finds the images of the tests. */
export const imageArchive = "/var/lib/vm-images.tar";

function baseIn(directory: string): Base {
  return {
    disk: join(directory, "disk.img"),
    kernel: join(directory, "vmlinuz"),
    initrd: join(directory, "initrd.img"),
  };
}

/**
 * The base kept for these inputs, or a new one. `finish` boots a new one once for what only a running machine can do;
 * what that leaves on the disk is what every later machine starts with.
 */
export async function ensureBase(finish: (base: Base) => Promise<void>): Promise<Base> {
  const root = await rootFileSystem();
  const images = ociArchive(await buildBaseImages());
  const directory = join(places.bases, await keyOf(root.key, images));
  if (existsSync(directory)) return baseIn(directory);
  await forgetOthers(places.bases);
  const unfinished = `${directory}.unfinished`;
  await mkdir(unfinished, { recursive: true });
  progress("making the disk");
  await makeBase(root.path, images, unfinished);
  progress("first boot, to import the images of the tests");
  await finish(baseIn(unfinished));
  await rename(unfinished, directory);
  return baseIn(directory);
}

async function makeBase(root: string, images: Buffer, directory: string): Promise<void> {
  const base = baseIn(directory);
  const staged = join(directory, "root");
  await runProgram("cp", ["-a", "--reflink=auto", root, staged]);
  for (const [path, { text, executable }] of Object.entries(guestFiles)) {
    const file = join(staged, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    await chmod(file, executable ? 0o755 : 0o644);
  }
  await mkdir(join(staged, "opt/nodelet"), { recursive: true });
  await copyFile(process.execPath, join(staged, "usr/bin/node"));
  await writeFile(join(staged, imageArchive), images);
  await runProgram("chroot", [staged, "systemctl", "--quiet", "enable", ...enabledUnits]);
  await runProgram("chroot", [staged, "systemctl", "--quiet", "mask", ...maskedUnits]);
  await makeStartUpFiles(staged, base);
  await rm(join(staged, "boot"), { recursive: true });
  await makeDisk(base.disk, diskBytes, staged);
  await rm(staged, { recursive: true });
}

/** A file with an ext4 on it that has what is in the directory. Needs no mount and no loop device. */
export async function makeDisk(path: string, bytes: number, content: string): Promise<void> {
  await writeFile(path, "");
  await truncate(path, bytes);
  await runProgram("mke2fs", ["-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", content, path]);
}

async function keyOf(rootKey: string, images: Buffer): Promise<string> {
  const hash = createHash("sha256").update(rootKey).update(process.version).update(images);
  hash.update(JSON.stringify([guestFiles, enabledUnits, maskedUnits, diskBytes]));
  for (const file of ["base.ts", "start-up-files.ts", "root-file-system.ts"]) {
    hash.update(await readFile(fileURLToPath(new URL(file, import.meta.url))));
  }
  return hash.digest("hex").slice(0, 12);
}
