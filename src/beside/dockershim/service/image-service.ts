import type { ImageService } from "../../../connections/cri/index.ts";
import { never } from "../../../ground/base/index.ts";
import type { Images } from "./images.ts";

/** CRI's ImageService in front of Docker. */
export function imageService(images: Images): ImageService {
  return {
    listImages: async ({ filter }, { signal = never } = {}) => ({
      images: await images.list(filter?.image?.image ?? "", signal),
    }),
    imageStatus: async ({ image, verbose }, { signal = never } = {}) => {
      const found = await images.status(image?.image ?? "", signal);
      const info = verbose && found !== undefined ? { labels: JSON.stringify(found.labels) } : {};
      return { image: found?.image, info };
    },
    pullImage: async (request, { signal = never } = {}) => ({ imageRef: await images.pull(request, signal) }),
    removeImage: async ({ image }, { signal = never } = {}) => {
      await images.remove(image?.image ?? "", signal);
      return {};
    },
    imageFsInfo: async (_, { signal = never } = {}) => await images.fsInfo(signal),
  };
}
