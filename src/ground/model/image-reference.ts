import { table } from "../base/index.ts";

/** An image name taken apart. `domain` and `path` are in their full form: `docker.io`, `library/nginx`. */
export interface ImageReference {
  readonly domain: string;
  readonly path: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** The name does not follow the grammar; the message is the one Docker and Kubernetes users know. */
export class ImageNameError extends Error {
  override readonly name = "ImageNameError";
}

const hostLabel = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const host = `(?:${hostLabel}(?:\\.${hostLabel})*|\\[[a-fA-F0-9:]+\\])`;
const pathPart = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const tag = "\\w[\\w.-]{0,127}";
const digestAlgorithm = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*";
const fullReference = new RegExp(
  `^(?<domain>${host}(?::[0-9]+)?)/(?<path>${pathPart}(?:/${pathPart})*)` +
    `(?::(?<tag>${tag}))?(?:@(?<digest>${digestAlgorithm}:[0-9a-fA-F]{32,}))?$`,
);
const hexIdentifier = /^[a-f0-9]{64}$/;
const digestHexLengths: Readonly<Record<string, number>> = table({ sha256: 64, sha384: 96, sha512: 128 });
const longestPath = 255;

/** Parses an image name by Docker's rules, filling in the registry and `library/` where they are left out. */
export function parseImageReference(name: string): ImageReference {
  if (hexIdentifier.test(name)) {
    throw new ImageNameError(`invalid repository name (${name}), cannot specify 64-byte hexadecimal strings`);
  }
  const { domain, rest } = splitDomain(name);
  const colon = rest.indexOf(":");
  const remote = colon < 0 ? rest : rest.slice(0, colon);
  if (remote.toLowerCase() !== remote) {
    throw new ImageNameError(`invalid reference format: repository name (${remote}) must be lowercase`);
  }
  const groups = fullReference.exec(`${domain}/${rest}`)?.groups;
  if (groups === undefined) throw new ImageNameError("invalid reference format");
  const path = groups["path"] ?? "";
  if (path.length > longestPath) {
    throw new ImageNameError(`repository name must not be more than ${longestPath} characters`);
  }
  const digest = groups["digest"];
  if (digest !== undefined) checkDigest(digest);
  return { domain: groups["domain"] ?? "", path, tag: groups["tag"], digest };
}

/** The name under which credentials are looked up: registry and path, neither tag nor digest. */
export function repositoryOf(reference: ImageReference): string {
  return `${reference.domain}/${reference.path}`;
}

/** The name as written, with `:latest` when it has neither tag nor digest. Throws ImageNameError. */
export function withDefaultTag(name: string): string {
  const { tag, digest } = parseImage(name);
  return tag === undefined && digest === undefined ? `${name}:latest` : name;
}

/** The name with registry, and tag or digest, as runtimes list images; a name that cannot be parsed stays as it is. */
export function canonicalName(name: string): string {
  try {
    const reference = parseImageReference(name);
    const { tag, digest } = reference;
    return `${repositoryOf(reference)}${digest === undefined ? `:${tag ?? "latest"}` : `@${digest}`}`;
  } catch (error) {
    if (error instanceof ImageNameError) return name;
    throw error;
  }
}

export const pullPolicies = ["Always", "IfNotPresent", "Never"] as const;
export type PullPolicy = (typeof pullPolicies)[number];

/** What the API server writes into a container that names no pull policy: a moving tag is pulled each time. */
export function defaultPullPolicy(image: string): PullPolicy {
  try {
    const { tag, digest } = parseImageReference(image);
    return tag === "latest" || (tag === undefined && digest === undefined) ? "Always" : "IfNotPresent";
  } catch (error) {
    if (error instanceof ImageNameError) return "IfNotPresent";
    throw error;
  }
}

/** Parses with the prefix that users see when a pod names an impossible image. */
export function parseImage(name: string): ImageReference {
  try {
    return parseImageReference(name);
  } catch (error) {
    if (!(error instanceof ImageNameError)) throw error;
    throw new ImageNameError(`couldn't parse image name ${JSON.stringify(name)}: ${error.message}`, { cause: error });
  }
}

function splitDomain(name: string): { readonly domain: string; readonly rest: string } {
  const slash = name.indexOf("/");
  if (slash < 0) return { domain: "docker.io", rest: `library/${name}` };
  const first = name.slice(0, slash);
  const isRegistry = /[.:]/.test(first) || first === "localhost" || first.toLowerCase() !== first;
  const domain = !isRegistry || first === "index.docker.io" ? "docker.io" : first;
  const rest = isRegistry ? name.slice(slash + 1) : name;
  return { domain, rest: domain === "docker.io" && !rest.includes("/") ? `library/${rest}` : rest };
}

function checkDigest(digest: string): void {
  const [algorithm = "", hex = ""] = digest.split(":");
  const length = digestHexLengths[algorithm];
  if (length === undefined) throw new ImageNameError("unsupported digest algorithm");
  if (hex.length !== length) throw new ImageNameError("invalid checksum digest length");
  if (/[A-F]/.test(hex)) throw new ImageNameError("invalid checksum digest format");
}
