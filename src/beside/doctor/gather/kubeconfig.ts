import type { ClusterAccess } from "../../../connections/kube/index.ts";
import type { ExaminedWorld } from "../world.ts";

/** The kubeconfig as the agent reads it; undefined: there is none yet. Rejects when it can't be used. */
export async function readKubeconfig({ files }: ExaminedWorld, path: string): Promise<ClusterAccess | undefined> {
  const content = await files.textIfThere(path);
  if (content === undefined) return undefined;
  // Only now: most of what is asked needs no code for a cluster.
  const { parseKubeconfig } = await import("../../../connections/kube/index.ts");
  return await parseKubeconfig(content, path);
}

/** The files that a kubeconfig's user is proved by. */
export async function clientFilesOf(world: ExaminedWorld, path: string): Promise<readonly string[]> {
  const access = await readKubeconfig(world, path);
  if (access === undefined) return [];
  const { certificate, tokenFile } = access.user;
  const materials = certificate === undefined ? [] : [certificate.certificate, certificate.key];
  const paths = materials.flatMap((material) => (material.type === "file" ? [material.path] : []));
  return [...new Set([...paths, ...(tokenFile === "" ? [] : [tokenFile])])];
}
