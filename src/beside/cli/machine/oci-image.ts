import { createHash } from "node:crypto";
import { arch } from "node:os";
import { type TarEntry, tar } from "./tar.ts";

/** What goes into an image. Names are full references, such as "localhost/nodelet/busybox:1". */
export interface ImageRecipe {
  readonly name: string;
  readonly entries: readonly TarEntry[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly user?: string;
  readonly workingDir?: string;
  readonly env?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly exposedPorts?: readonly string[];
  readonly stopSignal?: string;
}

export interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly content: Buffer;
}

/** An image as a registry or an archive holds it. */
export interface OciImage {
  readonly name: string;
  readonly layer: Blob;
  readonly config: Blob;
  readonly manifest: Blob;
}

export function buildImage(recipe: ImageRecipe, architecture = ociArchitecture()): OciImage {
  const layer = blob("application/vnd.oci.image.layer.v1.tar", tar(recipe.entries));
  const config = jsonBlob("application/vnd.oci.image.config.v1+json", {
    architecture,
    os: "linux",
    created: "1970-01-01T00:00:00Z",
    config: {
      ...(recipe.entrypoint && { Entrypoint: recipe.entrypoint }),
      ...(recipe.command && { Cmd: recipe.command }),
      ...(recipe.user && { User: recipe.user }),
      ...(recipe.workingDir && { WorkingDir: recipe.workingDir }),
      ...(recipe.labels && { Labels: recipe.labels }),
      ...(recipe.stopSignal && { StopSignal: recipe.stopSignal }),
      ...(recipe.volumes && { Volumes: asSet(recipe.volumes) }),
      ...(recipe.exposedPorts && { ExposedPorts: asSet(recipe.exposedPorts) }),
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...(recipe.env ?? [])],
    },
    rootfs: { type: "layers", diff_ids: [layer.digest] },
    history: [{ created: "1970-01-01T00:00:00Z", created_by: "nodelet" }],
  });
  const manifest = jsonBlob("application/vnd.oci.image.manifest.v1+json", {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: descriptor(config),
    layers: [descriptor(layer)],
  });
  return { name: recipe.name, layer, config, manifest };
}

/** One archive with all the images, as `ctr images import` reads it. */
export function ociArchive(images: readonly OciImage[]): Buffer {
  const blobs = new Map<string, Blob>();
  for (const image of images) {
    for (const part of [image.layer, image.config, image.manifest]) blobs.set(part.digest, part);
  }
  const index = {
    schemaVersion: 2,
    manifests: images.map((image) => ({
      ...descriptor(image.manifest),
      annotations: { "io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": tagOf(image.name) },
    })),
  };
  return tar([
    { type: "file", path: "oci-layout", content: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
    { type: "file", path: "index.json", content: Buffer.from(JSON.stringify(index)) },
    { type: "directory", path: "blobs" },
    { type: "directory", path: "blobs/sha256" },
    ...[...blobs.values()].map(
      ({ digest, content }): TarEntry => ({ type: "file", path: `blobs/${digest.replace(":", "/")}`, content }),
    ),
  ]);
}

/** One archive with all the images, as `docker load` reads it. */
export function dockerArchive(images: readonly OciImage[]): Buffer {
  const nameOf = ({ digest }: Blob, ending: string): string => `${digest.replace("sha256:", "")}${ending}`;
  const files = new Map<string, Buffer>();
  for (const { layer, config } of images) {
    files.set(nameOf(layer, ".tar"), layer.content);
    files.set(nameOf(config, ".json"), config.content);
  }
  const manifest = images.map(({ name, layer, config }) => ({
    Config: nameOf(config, ".json"),
    RepoTags: [name],
    Layers: [nameOf(layer, ".tar")],
  }));
  return tar([
    ...[...files].map(([path, content]): TarEntry => ({ type: "file", path, content })),
    { type: "file", path: "manifest.json", content: Buffer.from(JSON.stringify(manifest)) },
  ]);
}

/** The tag of a full reference: "localhost:5000/a/b:1" has "1", without one it is "latest". */
export function tagOf(name: string): string {
  const last = name.slice(name.lastIndexOf("/") + 1);
  const colon = last.indexOf(":");
  return colon < 0 ? "latest" : last.slice(colon + 1);
}

function descriptor({ mediaType, digest, content }: Blob): object {
  return { mediaType, digest, size: content.length };
}

function jsonBlob(mediaType: string, value: object): Blob {
  return blob(mediaType, Buffer.from(JSON.stringify(value)));
}

function blob(mediaType: string, content: Buffer): Blob {
  return { mediaType, digest: `sha256:${createHash("sha256").update(content).digest("hex")}`, content };
}

function asSet(names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, {}]));
}

/** Node's name of this machine's processor in the words of OCI. */
function ociArchitecture(): string {
  const own = arch();
  return own === "x64" ? "amd64" : own;
}
