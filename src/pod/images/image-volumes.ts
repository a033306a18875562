import type { RuntimeIdentity } from "../../connections/cri/index.ts";
import { table } from "../../ground/base/index.ts";
import type { Container, IdentifiedPod } from "../../ground/model/index.ts";
import { StartError } from "../runtime/index.ts";

/** Releases since which a runtime mounts images; one that is not listed is taken at its word. */
const since: Readonly<Record<string, readonly [major: number, minor: number]>> = table({
  containerd: [2, 1],
  "cri-o": [1, 31],
});

/** Names of the images that pods mount: they are in use although no container is made from them. */
export function mountedImageNames(pods: readonly IdentifiedPod[]): readonly string[] {
  return pods.flatMap(({ spec }) => (spec.volumes ?? []).flatMap(({ image }) => image?.reference ?? []));
}

/**
 * Fetches the images that a container mounts; the runtime's names for them by volume. A runtime that would take such a
 * mount for a mistake is not even asked.
 */
export async function fetchMountedImages(
  { spec }: IdentifiedPod,
  { volumeMounts = [] }: Pick<Container, "volumeMounts">,
  runtime: () => RuntimeIdentity,
  fetch: (image: { readonly reference: string; readonly pullPolicy: string | undefined }) => Promise<string>,
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(volumeMounts.map(({ name }) => name));
  const refs = new Map<string, string>();
  for (const { name, image } of spec.volumes ?? []) {
    if (image === undefined || !wanted.has(name)) continue;
    checkMountsImages(name, runtime());
    refs.set(name, await fetch({ reference: image.reference ?? "", pullPolicy: image.pullPolicy }));
  }
  return refs;
}

/** Throws where the runtime is too old to mount images. */
export function checkMountsImages(volume: string, { name, version }: RuntimeIdentity): void {
  const needed = since[name];
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (needed === undefined || major === undefined) return;
  const [neededMajor, neededMinor] = needed;
  if (Number(major) > neededMajor || (Number(major) === neededMajor && Number(minor) >= neededMinor)) return;
  throw new StartError(
    "CreateContainerConfigError",
    `volume "${volume}" is an image, which ${name} ${version} can't mount; ${name} ${neededMajor}.${neededMinor} or newer can`,
  );
}
