import type { PersistentVolume } from "../../../ground/model/index.ts";

const annotationName = "volume.beta.kubernetes.io/mount-options";

/** Options for mount(8) that the volume's owner asks for. */
export function mountOptionsOf({ metadata, spec }: PersistentVolume): readonly string[] {
  const annotation = metadata?.annotations?.[annotationName];
  if (annotation !== undefined) return annotation.split(",").filter((option) => option !== "");
  return spec?.mountOptions ?? [];
}
