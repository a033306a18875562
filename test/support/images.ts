import {
  buildBusyboxImage,
  type ImageRecipe,
  type OciImage,
  type TarEntry,
} from "../../src/beside/cli/machine/index.ts";

/** An image with busybox and what the test adds: text files by path, and the settings of an ImageRecipe. */
export async function makeImage(
  recipe: Omit<ImageRecipe, "entries"> & { readonly files?: Readonly<Record<string, string>> },
): Promise<OciImage> {
  const { files = {}, ...settings } = recipe;
  const directories = new Set<string>();
  const entries: TarEntry[] = [];
  for (const [path, text] of Object.entries(files)) {
    const parts = path.replace(/^\//, "").split("/");
    for (let depth = 1; depth < parts.length; depth++) directories.add(parts.slice(0, depth).join("/"));
    entries.push({ type: "file", path: parts.join("/"), content: Buffer.from(text), mode: 0o755 });
  }
  const parents = [...directories].map((path): TarEntry => ({ type: "directory", path }));
  return buildBusyboxImage({ ...settings, entries: [...parents, ...entries] });
}
