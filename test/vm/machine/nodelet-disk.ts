import { copyFile, cp, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeDisk } from "./base.ts";

const project = fileURLToPath(new URL("../../..", import.meta.url));
const bytes = 256 * 2 ** 20;

/** A disk with what is shipped of nodelet: program, bundle, and the packages that the bundle leaves outside. */
export async function makeNodeletDisk(path: string): Promise<void> {
  const staged = `${path}.d`;
  await mkdir(staged, { recursive: true });
  for (const name of ["bin", "dist", "docs/nodelet.service"]) {
    await cp(join(project, name), join(staged, name), { recursive: true });
  }
  await copyFile(join(project, "package.json"), join(staged, "package.json"));
  for (const name of await outsideTheBundle()) {
    await cp(join(project, "node_modules", name), join(staged, "node_modules", name), { recursive: true });
  }
  await makeDisk(path, bytes, staged);
  await rm(staged, { recursive: true });
}

/** The native addons, and what they need themselves. */
async function outsideTheBundle(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const add = async (name: string): Promise<void> => {
    if (found.has(name)) return;
    found.add(name);
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
      await readFile(join(project, "node_modules", name, "package.json"), "utf8"),
    );
    for (const needed of Object.keys(dependencies)) await add(needed);
    // Builds for other platforms are not there.
    for (const needed of Object.keys(optionalDependencies)) await add(needed).catch(() => found.delete(needed));
  };
  for (const name of ["koffi", "classic-level"]) await add(name);
  return found;
}
