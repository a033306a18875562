import type { IdentifiedPod } from "../../model/index.ts";
import type { VolumeKind } from "./kind.ts";

/** Port: fetches an image as for a container of the pod; resolves with the runtime's name for it. */
export type EnsureVolumeImage = (
  pod: IdentifiedPod,
  image: { readonly reference: string; readonly pullPolicy: string },
  signal: AbortSignal,
) => Promise<string>;

/** The files of an image. The runtime mounts them; all we do is fetch the image. */
export function imageKind(ensureImage: EnsureVolumeImage): VolumeKind {
  return {
    plugin: "kubernetes.io/image",
    matches: (source) => source.type === "inline" && source.volume.image !== undefined,
    async setUp({ pod, source }, _context, signal) {
      const { reference = "", pullPolicy = "IfNotPresent" } =
        (source.type === "inline" ? source.volume.image : undefined) ?? {};
      const imageRef = await ensureImage(pod, { reference, pullPolicy }, signal);
      return { volume: { type: "image", imageRef, image: reference } };
    },
    async tearDown() {},
  };
}
