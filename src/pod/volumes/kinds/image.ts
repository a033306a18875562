import type { VolumeKind } from "./kind.ts";

/** The files of an image. The runtime mounts them, from an image that is fetched when a container that uses it starts. */
export const imageKind: VolumeKind = {
  plugin: "kubernetes.io/image",
  matches: (source) => source.type === "inline" && source.volume.image !== undefined,
  async setUp({ source }) {
    const { reference = "" } = (source.type === "inline" ? source.volume.image : undefined) ?? {};
    return { volume: { type: "image", image: reference } };
  },
  async tearDown() {},
};
