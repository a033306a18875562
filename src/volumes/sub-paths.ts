import { mkdir, readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { SubPaths } from "../runtime/index.ts";

/** Paths inside a volume. A link that leads out of the volume is refused. */
export const subPaths: SubPaths = {
  async create({ volumePath, subPath }) {
    await mkdir(join(volumePath, subPath), { recursive: true, mode: 0o750 });
  },
  prepare: ({ volumePath, subPath }) => resolveInside(volumePath, subPath),
};

/** Reads a file of a volume on behalf of the pod that owns it. */
export async function readVolumeFile(volumePath: string, path: string): Promise<string> {
  return readFile(await resolveInside(volumePath, path), "utf8");
}

async function resolveInside(volumePath: string, path: string): Promise<string> {
  const [volume, target] = await Promise.all([realpath(volumePath), realpath(join(volumePath, path))]);
  if (target !== volume && !target.startsWith(`${volume}/`)) {
    throw new Error(`path ${JSON.stringify(path)} leads out of its volume`);
  }
  return target;
}
