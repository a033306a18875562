import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { cutText, isMissing, messageOf } from "../../../ground/base/index.ts";
import { type Fields, fieldsOf, textIn } from "../engine/index.ts";

/** A network: plugins that are called one after the other. */
export interface NetworkList {
  readonly name: string;
  readonly cniVersion: string;
  readonly plugins: readonly Fields[];
}

const longestFile = 1024 * 1024;

/** What a file of the configuration directory describes, or what is wrong with it. Pure. */
export function parseNetwork(fileName: string, content: string): NetworkList | { readonly problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    return { problem: `${fileName}: ${cutText(messageOf(error), 512)}` };
  }
  const fields = fieldsOf(value);
  const listed = fields["plugins"];
  const plugins = fileName.endsWith(".conflist") ? (Array.isArray(listed) ? listed.map(fieldsOf) : []) : [fields];
  if (plugins.length === 0) return { problem: `${fileName}: no plugins` };
  const nameless = plugins.find((plugin) => !/^[\w.-]+$/.test(textIn(plugin, "type")));
  if (nameless !== undefined) return { problem: `${fileName}: a plugin without a usable type` };
  return { name: textIn(fields, "name"), cniVersion: textIn(fields, "cniVersion") || "0.2.0", plugins };
}

/** Where a plugin's program is; undefined when there is none. */
export async function findPlugin(type: string, directories: readonly string[]): Promise<string | undefined> {
  for (const directory of directories) {
    const path = join(directory, type);
    try {
      if ((await stat(path)).isFile()) return path;
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return undefined;
}

/** The first usable network of the directory, in the order of the files' names. */
export async function chooseNetwork(
  confDir: string,
  binDirs: readonly string[],
): Promise<NetworkList | { readonly problem: string }> {
  let problem = `no networks found in ${confDir}`;
  for (const fileName of await candidates(confDir)) {
    const found = await readNetwork(confDir, fileName);
    if ("problem" in found) {
      problem = found.problem;
      continue;
    }
    const missing = await firstMissing(found, binDirs);
    if (missing === undefined) return found;
    problem = `${fileName}: failed to find plugin "${missing}" in path [${binDirs.join(" ")}]`;
  }
  return { problem };
}

/** A file that can't be read, such as a link to nowhere, is no reason not to look at the next one. */
async function readNetwork(confDir: string, fileName: string): Promise<NetworkList | { readonly problem: string }> {
  const path = join(confDir, fileName);
  try {
    const found = await stat(path);
    if (!found.isFile()) return { problem: `${fileName}: not a file` };
    if (found.size > longestFile) return { problem: `${fileName}: too long` };
    return parseNetwork(fileName, await readFile(path, "utf8"));
  } catch (error) {
    return { problem: `${fileName}: ${messageOf(error)}` };
  }
}

async function candidates(confDir: string): Promise<readonly string[]> {
  try {
    return (await readdir(confDir)).filter((name) => /\.(conf|conflist|json)$/.test(name)).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function firstMissing({ plugins }: NetworkList, binDirs: readonly string[]): Promise<string | undefined> {
  for (const plugin of plugins) {
    const type = textIn(plugin, "type");
    if ((await findPlugin(type, binDirs)) === undefined) return type;
  }
  return undefined;
}
