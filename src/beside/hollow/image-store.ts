import { createHash } from "node:crypto";
import { CriError, Image, type ImageService, type PullImageRequest } from "../../connections/cri/index.ts";
import type { Clock } from "../../ground/base/index.ts";
import type { CallContext } from "./context.ts";

/** An image in the make-believe registry. */
export interface RegistryImage {
  /** As users write it: `nginx`, `registry.example/app:1`. */
  readonly name: string;
  readonly sizeBytes?: number;
  readonly pullMs?: number;
  /** Pulling needs these. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Pulling fails with this. */
  readonly failure?: { readonly code: "NotFound" | "Unknown" | "Unavailable"; readonly message: string };
  /** What its user is set to: a number is a uid, a word a name. */
  readonly user?: string;
  readonly pinned?: boolean;
}

export interface StoredImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly sizeBytes: number;
  readonly user: string;
  readonly pinned: boolean;
}

/** What becomes of images the registry has not been told of. */
export type UnknownImages = "pullable" | "absent";

const defaultSizeBytes = 5_000_000;

/** Images on the node, and the registry they come from. */
export class ImageStore {
  readonly #clock: Clock;
  readonly #now: () => bigint;
  readonly #unknown: UnknownImages;
  readonly #registry = new Map<string, RegistryImage>();
  readonly #present = new Map<string, StoredImage>();

  constructor(clock: Clock, now: () => bigint, unknown: UnknownImages) {
    this.#clock = clock;
    this.#now = now;
    this.#unknown = unknown;
  }

  /** Puts an image into the registry, or replaces it. */
  publish(image: RegistryImage): void {
    this.#registry.set(fullReference(image.name), image);
  }

  /** Puts an image onto the node as if it had been pulled before. */
  preload(...names: readonly string[]): void {
    for (const name of names) this.#store(fullReference(name));
  }

  /** Names of the images on the node. */
  names(): string[] {
    return [...this.#present.values()].flatMap(({ tags }) => tags).sort();
  }

  clear(): void {
    this.#present.clear();
  }

  /** Finds by tag, digest or id. */
  find(name: string): StoredImage | undefined {
    const byId = this.#present.get(name) ?? this.#present.get(`sha256:${name}`);
    if (byId !== undefined) return byId;
    const reference = fullReference(name);
    return [...this.#present.values()].find(
      ({ tags, digests }) => tags.includes(reference) || digests.includes(reference),
    );
  }

  async list(): ReturnType<ImageService["listImages"]> {
    return { images: [...this.#present.values()].map(imageMessage) };
  }

  async status(name: string): ReturnType<ImageService["imageStatus"]> {
    if (name === "") {
      throw new CriError("Unknown", "imageStatus", 'can not resolve "" locally: ambiguous digest string');
    }
    const image = this.find(name);
    return { image: image && imageMessage(image), info: {} };
  }

  async pull(request: PullImageRequest, { caller }: CallContext): ReturnType<ImageService["pullImage"]> {
    const reference = fullReference(request.image?.image ?? "");
    const known = this.#registry.get(reference);
    if (known?.pullMs !== undefined) await this.#clock.sleep(known.pullMs, caller);
    const failed = (code: "NotFound" | "Unknown" | "Unavailable", why: string): CriError =>
      new CriError(code, "pullImage", `failed to pull and unpack image "${reference}": ${why}`);
    if (known === undefined && this.#unknown === "absent") {
      throw failed("NotFound", `failed to resolve reference "${reference}": ${reference}: not found`);
    }
    if (known?.failure !== undefined) throw failed(known.failure.code, known.failure.message);
    const { credentials } = known ?? {};
    const { username, password } = credentialsIn(request);
    if (credentials !== undefined && (username !== credentials.username || password !== credentials.password)) {
      const denied = "pull access denied, repository does not exist or may require authorization";
      throw failed("Unknown", `failed to resolve reference "${reference}": ${denied}: authorization failed`);
    }
    return { imageRef: this.#store(reference).id };
  }

  async remove(name: string): Promise<Record<string, never>> {
    const image = this.find(name);
    if (image !== undefined) this.#present.delete(image.id);
    return {};
  }

  async fsInfo(): ReturnType<ImageService["imageFsInfo"]> {
    const usedBytes = [...this.#present.values()].reduce((sum, { sizeBytes }) => sum + BigInt(sizeBytes), 0n);
    const usage = {
      timestamp: this.#now(),
      fsId: { mountpoint: "/" },
      usedBytes: { value: usedBytes },
      inodesUsed: { value: BigInt(this.#present.size) * 100n },
    };
    return { imageFilesystems: [usage], containerFilesystems: [] };
  }

  #store(reference: string): StoredImage {
    const { sizeBytes = defaultSizeBytes, user = "", pinned = false } = this.#registry.get(reference) ?? {};
    const id = `sha256:${digest(reference)}`;
    const repository = reference.replace(/@.*$/, "").replace(/:[^:/]*$/, "");
    const image: StoredImage = {
      id,
      tags: reference.includes("@") ? [] : [reference],
      digests: [reference.includes("@") ? reference : `${repository}@sha256:${digest(`manifest ${reference}`)}`],
      sizeBytes,
      user,
      pinned,
    };
    this.#present.set(id, image);
    return image;
  }
}

function credentialsIn({ auth }: PullImageRequest): { username: string; password: string } {
  if (auth?.auth) {
    const [username = "", ...password] = Buffer.from(auth.auth, "base64").toString().split(":");
    return { username, password: password.join(":") };
  }
  return { username: auth?.username ?? "", password: auth?.password ?? "" };
}

function imageMessage({ id, tags, digests, sizeBytes, user, pinned }: StoredImage): Image {
  const uid = /^\d+$/.test(user) ? { value: BigInt(user) } : undefined;
  return Image.fromPartial({
    id,
    repoTags: [...tags],
    repoDigests: [...digests],
    size: BigInt(sizeBytes),
    uid,
    username: uid === undefined ? user : "",
    pinned,
  });
}

/** `nginx` is docker.io/library/nginx:latest. */
function fullReference(name: string): string {
  const [first = "", ...others] = name.split("/");
  const hasHost = others.length > 0 && (/[.:]/.test(first) || first === "localhost");
  const path = hasHost ? name : others.length > 0 ? `docker.io/${name}` : `docker.io/library/${name}`;
  return path.includes("@") || /:[^/]*$/.test(path) ? path : `${path}:latest`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
