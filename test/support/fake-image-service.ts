import { CriError, type Image, type ImageService } from "../../src/connections/cri/index.ts";

export interface RegistryImage {
  readonly id: string;
  readonly size?: bigint;
  /** `user:password` of those who may pull; absent: anybody. */
  readonly logins?: readonly string[];
  readonly uid?: bigint;
  readonly username?: string;
}

/**
 * An image service with a registry behind it: pulls bring what the registry has, to whom it lets, and take until
 * `release` when held. What is pulled is then present, what is removed is gone.
 */
export class FakeImageService implements ImageService {
  readonly registry = new Map<string, RegistryImage>();
  readonly present = new Map<string, Image>();
  readonly pulls: { readonly image: string; readonly login: string; readonly runtimeHandler: string }[] = [];
  readonly removed: string[] = [];
  /** While set, every call of the kind fails with it. */
  readonly broken: { status?: CriError; list?: CriError; remove?: CriError; fsInfo?: CriError } = {};
  readonly mountpoints: string[] = [];
  readonly #held = new Map<string, { readonly wait: Promise<void>; readonly release: () => void }>();

  /** Puts an image on the node without pulling it. */
  preload(name: string, image: Partial<Image> & { readonly id: string }): Image {
    const full: Image = {
      repoTags: [name],
      repoDigests: [],
      size: 1_000n,
      uid: undefined,
      username: "",
      spec: undefined,
      pinned: false,
      ...image,
    };
    this.present.set(full.id, full);
    return full;
  }

  /** Pulls of this image do not end until `release`. */
  hold(image: string): void {
    let release: () => void = () => {};
    const wait = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held.set(image, { wait, release });
  }

  release(image: string): void {
    this.#held.get(image)?.release();
    this.#held.delete(image);
  }

  readonly imageStatus: ImageService["imageStatus"] = async (request) => {
    if (this.broken.status !== undefined) throw this.broken.status;
    return { image: this.#find(request.image?.image ?? ""), info: {} };
  };

  readonly pullImage: ImageService["pullImage"] = async (request, options) => {
    const name = request.image?.image ?? "";
    const login = request.auth === undefined ? "" : `${request.auth.username}:${request.auth.password}`;
    this.pulls.push({ image: name, login, runtimeHandler: request.image?.runtimeHandler ?? "" });
    const { signal } = options ?? {};
    const held = this.#held.get(name);
    if (held !== undefined) await (signal === undefined ? held.wait : Promise.race([held.wait, rejectOnAbort(signal)]));
    const image = this.registry.get(name);
    if (image === undefined) throw new CriError("NotFound", "pullImage", `failed to resolve reference "${name}"`);
    if (image.logins !== undefined && !image.logins.includes(login)) {
      throw new CriError("Unknown", "pullImage", `pull access denied for "${login.split(":")[0]}"`);
    }
    const { id, size = 1_000n, uid, username = "" } = image;
    this.preload(name, { id, size, uid: uid === undefined ? undefined : { value: uid }, username });
    return { imageRef: id };
  };

  readonly listImages: ImageService["listImages"] = async () => {
    if (this.broken.list !== undefined) throw this.broken.list;
    return { images: [...this.present.values()] };
  };

  readonly removeImage: ImageService["removeImage"] = async (request) => {
    if (this.broken.remove !== undefined) throw this.broken.remove;
    const id = request.image?.image ?? "";
    if (this.present.delete(id)) this.removed.push(id);
    return {};
  };

  readonly imageFsInfo: ImageService["imageFsInfo"] = async () => {
    if (this.broken.fsInfo !== undefined) throw this.broken.fsInfo;
    const usages = this.mountpoints.map((mountpoint) => ({
      timestamp: 1n,
      fsId: { mountpoint },
      usedBytes: { value: 4_096n },
      inodesUsed: { value: 7n },
    }));
    return { imageFilesystems: usages, containerFilesystems: [] };
  };

  #find(name: string): Image | undefined {
    return [...this.present.values()].find(({ id, repoTags }) => id === name || repoTags.includes(name));
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
