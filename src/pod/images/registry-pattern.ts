/** A registry, optionally with port and path, as credential entries and plugins name what they serve. */
export interface RegistryPattern {
  /** Dot-separated host labels, each of which may hold `*`. An IPv6 address is one label. */
  readonly labels: readonly string[];
  readonly port: string;
  /** Empty, or begins with `/`. Compared as a plain prefix. */
  readonly path: string;
}

const hostAndPort = /^(?<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._*-]*)(?::(?<port>[0-9]*))?$/;

/** Takes `host[:port][/path]` apart, a scheme in front is dropped; undefined when it is not of that form. */
export function parseRegistryPattern(text: string): RegistryPattern | undefined {
  const { authority, path } = splitLocation(text);
  const groups = hostAndPort.exec(authority)?.groups;
  const host = groups?.["host"];
  if (host === undefined) return undefined;
  return { labels: host.startsWith("[") ? [host] : host.split("."), port: groups?.["port"] ?? "", path };
}

/** Ports equal, as many host labels, each fitting its label, and the pattern's path a prefix of the image's. */
export function matchesRegistry(pattern: RegistryPattern, image: RegistryPattern): boolean {
  return (
    pattern.port === image.port &&
    pattern.labels.length === image.labels.length &&
    image.path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => matchesLabel(label, image.labels[index] ?? ""))
  );
}

/** How entries of Docker's config files are indexed: host and path, without scheme and the API version of old. */
export function registryKey(location: string): string | undefined {
  const { authority, path } = splitLocation(location);
  if (!hostAndPort.test(authority)) return undefined;
  const effective = /^\/v[12]\//.test(path) ? path.slice(3) : path;
  return effective === "/" ? authority : authority + effective;
}

/** True for images that Docker Hub serves, so that entries for its old index address fit them. */
export function isDockerHubImage(repository: string): boolean {
  const slash = repository.indexOf("/");
  const first = slash < 0 ? repository : repository.slice(0, slash);
  if (first === "") return false;
  return slash < 0 || first === "docker.io" || first === "index.docker.io" || !/[.:]/.test(first);
}

function splitLocation(text: string): { readonly authority: string; readonly path: string } {
  const location = text.replace(/^https?:\/\//, "").replace(/[?#].*$/s, "");
  const slash = location.indexOf("/");
  return slash < 0
    ? { authority: location, path: "" }
    : { authority: location.slice(0, slash), path: location.slice(slash) };
}

function matchesLabel(pattern: string, label: string): boolean {
  if (!pattern.includes("*")) return pattern === label;
  const pieces = pattern.split("*");
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  if (!label.startsWith(first)) return false;
  let from = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = label.indexOf(piece, from);
    if (found < 0) return false;
    from = found + piece.length;
  }
  return label.length - last.length >= from && label.endsWith(last);
}
