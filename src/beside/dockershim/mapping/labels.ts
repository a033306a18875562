// What a container is to the shim stands in its labels, so that nothing has to be remembered elsewhere. Names of the
// first three are dockershim's, which others read.
import { parseName } from "./names.ts";

export const typeLabel = "io.kubernetes.docker.type";
export const sandboxIdLabel = "io.kubernetes.sandbox.id";
export const logPathLabel = "io.kubernetes.container.logpath";
/** Nanoseconds since 1970: Docker's lists know the second only, and what is newest is decided by it. */
export const createdAtLabel = "io.nodelet.docker.created-at";
/** The image as CRI was asked for it. */
export const imageLabel = "io.nodelet.docker.image";
export const runtimeHandlerLabel = "io.nodelet.docker.runtime-handler";
/** Names of the labels that CRI gave: a container has those of its image too, and kubelets act by what they find. */
const givenLabel = "io.nodelet.docker.given";
const containerNameLabel = "io.kubernetes.container.name";
const annotationPrefix = "annotation.";

export type ContainerType = "podsandbox" | "container";

type Texts = Readonly<Record<string, string>>;

/** All that CRI gave, in one table; ours are written last, so that no pod chooses them. */
export function labelsFor(
  texts: { readonly labels: Texts; readonly annotations: Texts },
  type: ContainerType,
  ours: Texts,
): Record<string, string> {
  const labels: Record<string, string> = { ...texts.labels };
  for (const [key, value] of shortest(texts.annotations)) labels[`${annotationPrefix}${key}`] = value;
  const given = type === "container" ? { [givenLabel]: JSON.stringify(Object.keys(labels)) } : {};
  if (type === "podsandbox") labels[containerNameLabel] = "POD";
  return { ...labels, ...ours, ...given, [typeLabel]: type };
}

/**
 * Docker repeats the labels of every container in every list and event, with some signs six times as long: the
 * annotations of a few pods could make its lists too long to be read. The longest are left out, nobody asks for them.
 */
const annotationBytes = 128 * 1024;

function shortest(annotations: Texts): readonly (readonly [string, string])[] {
  let bytes = 0;
  return Object.entries(annotations)
    .map(([key, value]) => ({ entry: [key, value] as const, length: wireBytes(key) + wireBytes(value) }))
    .sort((one, other) => one.length - other.length)
    .flatMap(({ entry, length }) => {
      bytes += length;
      return bytes <= annotationBytes ? [entry] : [];
    });
}

/** In the JSON that Docker writes. */
function wireBytes(content: string): number {
  return Buffer.byteLength(JSON.stringify(content)) + 5 * (content.match(/[<>&]/g)?.length ?? 0);
}

const hidden: ReadonlySet<string> = new Set([
  ...[typeLabel, sandboxIdLabel, logPathLabel, createdAtLabel, imageLabel, runtimeHandlerLabel, givenLabel],
]);

/** CRI's labels and annotations again. */
export function givenTexts(labels: Texts): { labels: Record<string, string>; annotations: Record<string, string> } {
  const given = { labels: {} as Record<string, string>, annotations: {} as Record<string, string> };
  const isSandbox = labels[typeLabel] === "podsandbox";
  const names = namesIn(labels[givenLabel]);
  for (const [key, value] of Object.entries(labels)) {
    if (names?.has(key) === false) continue;
    if (key.startsWith(annotationPrefix)) given.annotations[key.slice(annotationPrefix.length)] = value;
    else if (!hidden.has(key) && !(isSandbox && key === containerNameLabel)) given.labels[key] = value;
  }
  return given;
}

/** Undefined where nobody has noted them: in containers of other shims. */
function namesIn(noted: string | undefined): ReadonlySet<unknown> | undefined {
  if (noted === undefined) return undefined;
  try {
    const names: unknown = JSON.parse(noted);
    return new Set(Array.isArray(names) ? names : []);
  } catch {
    return new Set();
  }
}

/**
 * Whether a container is part of a pod. Labels alone do not tell: a container has those of its image too, and whoever
 * made that wrote them. The name comes from who makes the container.
 */
export function isPart({ name, labels }: { readonly name: string; readonly labels: Texts }, type: ContainerType) {
  return labels[typeLabel] === type && parseName(name) !== undefined;
}

/** When it was made: as the shim noted it, else as Docker says. */
export function createdAtOf(labels: Texts, engineSays: bigint): bigint {
  const noted = labels[createdAtLabel];
  return noted !== undefined && /^\d{1,19}$/.test(noted) ? BigInt(noted) : engineSays;
}
