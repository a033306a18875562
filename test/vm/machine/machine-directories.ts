import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { places } from "./places.ts";

/** A new directory for the disks of a machine of this process. */
export async function claimMachineDirectory(name: string): Promise<string> {
  await mkdir(places.machines, { recursive: true });
  return await mkdtemp(join(places.machines, `${process.pid}-${name.replaceAll(/\W+/g, "-")}-`));
}

/** Removes the disks of machines whose process was killed; qemu ended with it. */
export async function sweepMachineDirectories(): Promise<void> {
  if (!existsSync(places.machines)) return;
  for (const name of await readdir(places.machines)) {
    const owner = Number.parseInt(name, 10);
    if (!existsSync(`/proc/${owner}`)) await rm(join(places.machines, name), { recursive: true, force: true });
  }
}
