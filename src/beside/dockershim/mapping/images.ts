import { Image } from "../../../connections/cri/index.ts";
import type { EngineImage } from "../engine/index.ts";

export interface PullReference {
  readonly repository: string;
  readonly tag: string;
}

/** What to pull. Without a tag Docker would pull all of them. */
export function pullReference(name: string): PullReference {
  const at = name.indexOf("@");
  if (at >= 0) return { repository: withoutTag(name.slice(0, at)), tag: name.slice(at + 1) };
  const repository = withoutTag(name);
  return { repository, tag: name.slice(repository.length + 1) || "latest" };
}

function withoutTag(name: string): string {
  const colon = name.lastIndexOf(":");
  return colon > name.lastIndexOf("/") ? name.slice(0, colon) : name;
}

/** Whether an image is the one that a name leads to; Docker's own names are short. */
export function isNamed({ id, tags, digests }: EngineImage, name: string): boolean {
  const { repository, tag } = pullReference(name.replace(/^(index\.)?docker\.io\/(library\/)?/, ""));
  return id === name || tags.includes(`${repository}:${tag}`) || digests.includes(`${repository}@${tag}`);
}

/** `X-Registry-Auth`, also for nobody in particular. */
export function authHeader(
  auth:
    | {
        readonly username: string;
        readonly password: string;
        readonly auth: string;
        readonly serverAddress: string;
        readonly identityToken: string;
        readonly registryToken: string;
      }
    | undefined,
): string {
  const { username, password } = decoded(auth);
  const fields = {
    username,
    password,
    serveraddress: auth?.serverAddress,
    identitytoken: auth?.identityToken,
    registrytoken: auth?.registryToken,
  };
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value));
  // With the signs at the end that make the length a multiple of four: without, Docker sees no login and says nothing.
  return Buffer.from(JSON.stringify(given)).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}

function decoded(auth: Parameters<typeof authHeader>[0]): { username: string; password: string } {
  if (auth === undefined) return { username: "", password: "" };
  if (auth.username !== "" || auth.auth === "") return auth;
  const text = withoutZeros(Buffer.from(auth.auth, "base64").toString("utf8"));
  const colon = text.indexOf(":");
  return colon < 0
    ? { username: text, password: "" }
    : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Without the zeros at its end: some programs encode their whole buffer. */
function withoutZeros(text: string): string {
  let end = text.length;
  while (text.charCodeAt(end - 1) === 0) end--;
  return text.slice(0, end);
}

export function imageMessage(image: EngineImage, isPinned: boolean): Image {
  return Image.fromPartial({
    id: image.id,
    repoTags: [...image.tags],
    repoDigests: [...image.digests],
    size: BigInt(Math.max(Math.trunc(image.size), 0)),
    ...userFields(image.user),
    pinned: isPinned,
  });
}

/** Whom the image's program runs as: a number, or a name that only the image can resolve. */
function userFields(user: string): { uid?: { value: bigint }; username?: string } {
  const [name = ""] = user.split(":");
  if (name === "") return {};
  return /^\d{1,10}$/.test(name) ? { uid: { value: BigInt(name) } } : { username: name };
}

/** The failure in a line of a pull's progress; a registry that is down is said to be. */
export function pullFailure(line: {
  readonly error: string;
  readonly errorDetail: { readonly code: number; readonly message: string };
}): string | undefined {
  const message = line.errorDetail.message || line.error;
  if (message === "") return undefined;
  return [502, 503, 504].includes(line.errorDetail.code) ? `RegistryUnavailable: ${message}` : message;
}
