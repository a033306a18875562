/** One file of a volume whose content comes from API objects. */
export interface ContentFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** Owner other than root. */
  readonly uid?: number | undefined;
}

/** Files by their path relative to the volume; `a/b` lies in a directory `a`. */
export type Content = ReadonlyMap<string, ContentFile>;

const longestPath = 4096;
const longestElement = 255;

/** The content can't become files: a path, a key or an object is not what the pod says it is. */
export class ContentError extends Error {
  override readonly name = "ContentError";
}

/**
 * Throws for a path that could leave the volume or take the place of the writer's own entries, all of which begin
 * with two dots.
 */
export function checkPath(path: string): void {
  if (path === "") throw new ContentError("invalid path: must not be empty");
  if (path.startsWith("/")) throw new ContentError(`invalid path: must be relative: ${path}`);
  if (path.includes("\0")) throw new ContentError("invalid path: must not contain a NUL byte");
  if (path.length > longestPath) {
    throw new ContentError(`invalid path: must have at most ${longestPath} characters, this one has ${path.length}`);
  }
  const elements = path.split("/");
  for (const element of elements) {
    if (element === "..") throw new ContentError(`invalid path: must not contain '..': ${path}`);
    if (Buffer.byteLength(element) > longestElement) {
      throw new ContentError(`invalid path: an element has more than ${longestElement} characters: ${path}`);
    }
  }
  if (elements[0]?.startsWith("..")) throw new ContentError(`invalid path: must not start with '..': ${path}`);
}

/** The path as the file system sees it: without empty elements and single dots. */
export function cleanPath(path: string): string {
  const elements = path.split("/").filter((element) => element !== "" && element !== ".");
  if (elements.length === 0) throw new ContentError(`invalid path: names no file: ${path}`);
  return elements.join("/");
}
