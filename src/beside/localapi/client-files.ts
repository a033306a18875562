import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { saveFile } from "../../ground/base/index.ts";
import type { LocalApi } from "./start.ts";

/**
 * Writes what clients need to reach the server. A kubeconfig that still fits stays as it is, so that its user is the
 * same after a restart of the server, and copies of it stay good.
 */
export async function writeClientFiles(
  dir: string,
  api: Pick<LocalApi, "url" | "caPem" | "adminKubeconfig" | "nodeKubeconfig">,
  nodes: readonly string[],
): Promise<void> {
  await saveFile(join(dir, "ca.crt"), api.caPem, 0o644);
  for (const node of nodes) {
    await keepOrWrite(join(dir, `node-${node}.kubeconfig`), api, () => api.nodeKubeconfig(node));
  }
  // Last, because whoever finds it takes the rest for ready.
  await keepOrWrite(join(dir, "admin.kubeconfig"), api, () => api.adminKubeconfig());
}

async function keepOrWrite(
  path: string,
  { url, caPem }: Pick<LocalApi, "url" | "caPem">,
  make: () => Promise<string>,
): Promise<void> {
  const found = await readFile(path, "utf8").catch(() => "");
  const authority = Buffer.from(caPem).toString("base64");
  if (found.includes(`"${url}"`) && found.includes(authority)) return;
  await saveFile(path, await make(), 0o600);
}
