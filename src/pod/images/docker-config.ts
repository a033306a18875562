/** One user name and password for a registry. */
export interface Login {
  readonly username: string;
  readonly password: string;
}

/** Logins by the location they are written under, in the order of the file. */
export type DockerConfig = readonly (readonly [location: string, login: Login])[];

/** The text is no Docker credentials file. Its message never quotes the text, which holds secrets. */
export class DockerConfigError extends Error {
  override readonly name = "DockerConfigError";
}

/** Reads `{"auths": {location: entry}}`: config.json and secrets of type kubernetes.io/dockerconfigjson. */
export function parseDockerConfigJson(text: string): DockerConfig {
  const document = parseObject(text);
  return readEntries(document["auths"] ?? {}, "auths");
}

/** Reads `{location: entry}`: .dockercfg and secrets of type kubernetes.io/dockercfg. */
export function parseDockerCfg(text: string): DockerConfig {
  return readEntries(parseObject(text), "the document");
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text around the fault.
    throw new DockerConfigError("not valid JSON");
  }
  if (!isObject(document)) throw new DockerConfigError("not a JSON object");
  return document;
}

/** More than anybody writes; a program could put tens of thousands into a secret. */
const mostLogins = 1_000;

function readEntries(entries: unknown, where: string): DockerConfig {
  if (!isObject(entries)) throw new DockerConfigError(`${where} is not a JSON object`);
  const count = Object.keys(entries).length;
  if (count > mostLogins) throw new DockerConfigError(`${where} has ${count} entries, want at most ${mostLogins}`);
  return Object.entries(entries).map(([location, entry]) => [location, readLogin(entry, location)] as const);
}

function readLogin(entry: unknown, location: string): Login {
  if (!isObject(entry)) throw new DockerConfigError(`the entry of ${JSON.stringify(location)} is not a JSON object`);
  const [username, password, auth] = ["username", "password", "auth"].map((field) => {
    const value = entry[field] ?? "";
    if (typeof value !== "string") {
      throw new DockerConfigError(`${field} in the entry of ${JSON.stringify(location)} is not a string`);
    }
    return value;
  });
  return auth ? decodeAuth(auth, location) : { username: username ?? "", password: password ?? "" };
}

function decodeAuth(auth: string, location: string): Login {
  const text = auth.trim();
  // Buffer skips characters that are not base64; the kubelet refuses them.
  const decoded = /^[A-Za-z0-9+/]*={0,2}$/.test(text) ? Buffer.from(text, "base64").toString("utf8") : "";
  const colon = decoded.indexOf(":");
  if (colon < 0) {
    throw new DockerConfigError(
      `auth in the entry of ${JSON.stringify(location)} must be formatted as base64(username:password)`,
    );
  }
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
