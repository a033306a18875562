import type { Alias, Document, Node, ParsedNode, Scalar, YAMLMap } from "yaml";
import { boundNesting, lazily, loadedPart, messageOf } from "../../base/index.ts";
import type { Place, Tree, TreeEntry } from "./tree.ts";

/** A syntax finding of a file; `duplicate` ones leave the file readable, the last of the repeated keys counting. */
export interface SyntaxFinding {
  readonly kind: "broken" | "duplicate" | "ignored-document";
  readonly message: string;
  readonly at: Place;
}

export interface ParsedFile {
  /** Undefined when the file is broken. */
  readonly tree: Tree | undefined;
  readonly findings: readonly SyntaxFinding[];
}

/** As much as a config map holds: it may come from one, and reading it is work that nothing else gets a turn in. */
export const longestConfigFile = 1024 * 1024;
// Aliases can make a few lines stand for billions of values; no configuration needs more than this.
const mostValues = 20_000;
const deepest = 64;
const yamlLibrary = lazily(() => loadedPart(import("yaml")));

/** Reads YAML 1.1 or JSON as Go's YAML library does: yes/no are booleans, dates and 1:30 are strings. */
export async function parseFile(bytes: Uint8Array): Promise<ParsedFile> {
  if (bytes.length > longestConfigFile) {
    return broken(`the file is larger than ${longestConfigFile} bytes, which no configuration is`, {
      line: 1,
      column: 1,
    });
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return broken("the file is not valid UTF-8 text", { line: 1, column: 1 });
  }
  const yaml = await yamlLibrary();
  const lines = new yaml.LineCounter();
  const composer = new yaml.Composer({
    version: "1.1",
    // Looked for below, in time that grows with the file and not with its square.
    uniqueKeys: false,
    intAsBigInt: true,
    prettyErrors: false,
    strict: true,
    logLevel: "silent",
    customTags: (tags) =>
      tags.filter(
        (tag) =>
          typeof tag === "string" || !(tag.tag.endsWith(":timestamp") || ("format" in tag && tag.format === "TIME")),
      ),
  });
  const documents: Document.Parsed[] = [];
  try {
    const tokens = boundNesting(new yaml.Parser(lines.addNewLine).parse(text));
    for (const document of composer.compose(tokens)) documents.push(document);
  } catch (error) {
    return broken(messageOf(error), { line: 1, column: 1 });
  }
  if (documents.length === 0) {
    return { tree: { kind: "null", at: { line: 1, column: 1 } }, findings: [] };
  }
  const [document, second] = documents;
  if (document === undefined) return { tree: undefined, findings: [] };
  const placeOf = (offset: number | undefined): Place => {
    const { line, col } = lines.linePos(offset ?? 0);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const findings: SyntaxFinding[] = document.errors.map((error) => ({
    kind: "broken",
    message: error.message,
    at: placeOf(error.pos[0]),
  }));
  if (second !== undefined) {
    findings.push({
      kind: "ignored-document",
      message: "only the first YAML document of the file is read, the rest is ignored",
      at: placeOf(second.range[0]),
    });
  }
  if (findings.some((finding) => finding.kind === "broken")) return { tree: undefined, findings };
  try {
    const builder = new TreeBuilder(document, yaml, placeOf);
    const tree = builder.build(document.contents, []);
    return { tree, findings: [...findings, ...builder.duplicates] };
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    return { tree: undefined, findings: [...findings, { kind: "broken", message: error.message, at: error.at }] };
  }
}

function broken(message: string, at: Place): ParsedFile {
  return { tree: undefined, findings: [{ kind: "broken", message, at }] };
}

class UnreadableError extends Error {
  override readonly name = "UnreadableError";
  readonly at: Place;
  constructor(message: string, at: Place) {
    super(message);
    this.at = at;
  }
}

class TreeBuilder {
  readonly duplicates: SyntaxFinding[] = [];
  #values = 0;
  readonly #document: Document.Parsed;
  readonly #yaml: typeof import("yaml");
  readonly #placeOf: (offset: number | undefined) => Place;

  constructor(document: Document.Parsed, yaml: typeof import("yaml"), placeOf: (offset: number | undefined) => Place) {
    this.#document = document;
    this.#yaml = yaml;
    this.#placeOf = placeOf;
  }

  build(node: ParsedNode | Node | null | undefined, path: readonly string[]): Tree {
    const at = this.#placeOf(node?.range?.[0]);
    this.#values++;
    if (this.#values > mostValues || path.length > deepest) {
      throw new UnreadableError(`more than ${mostValues} values, or more than ${deepest} levels of nesting`, at);
    }
    if (node === null || node === undefined) return { kind: "null", at };
    if (this.#yaml.isAlias(node)) return this.build(this.#target(node, at), [...path, "*"]);
    if (this.#yaml.isScalar(node)) return this.#scalar(node, at);
    if (this.#yaml.isSeq(node)) {
      return {
        kind: "list",
        items: node.items.map((item, index) => this.build(item as Node | null, [...path, `${index}`])),
        at,
      };
    }
    if (this.#yaml.isMap(node)) return { kind: "map", entries: this.#entries(node, path), at };
    throw new UnreadableError("a kind of value that a configuration cannot hold", at);
  }

  #target(alias: Alias, at: Place): Node {
    const target = alias.resolve(this.#document);
    if (target === undefined) throw new UnreadableError(`the alias *${alias.source} has no anchor before it`, at);
    return target;
  }

  #scalar(node: Scalar, at: Place): Tree {
    const { value } = node;
    switch (typeof value) {
      case "string":
        return { kind: "string", value, at };
      case "boolean":
        return { kind: "bool", value, at };
      case "bigint":
        return { kind: "int", value, at };
      case "number":
        return { kind: "float", value, at };
      default:
        if (value === null || value === undefined) return { kind: "null", at };
        return { kind: "string", value: node.source ?? String(value), at };
    }
  }

  #entries(map: YAMLMap, path: readonly string[]): TreeEntry[] {
    const own: TreeEntry[] = [];
    const firsts = new Map<string, Place>();
    const merged: TreeEntry[] = [];
    for (const pair of map.items) {
      const keyNode = pair.key as Node | null;
      const key = this.build(keyNode, [...path, "?"]);
      const isMerge =
        key.kind === "string" && key.value === "<<" && this.#yaml.isScalar(keyNode) && keyNode.type === "PLAIN";
      const name = isMerge ? "<<" : keyText(key);
      const value = this.build(pair.value as Node | null, [...path, name]);
      if (isMerge) {
        merged.push(...mergedEntries(value));
        continue;
      }
      const earlier = firsts.get(name);
      if (earlier === undefined) firsts.set(name, key.at);
      else this.#noteDuplicate([...path, name], earlier, key.at);
      own.push({ key: name, keyAt: key.at, value });
    }
    return [...merged.filter((entry) => !firsts.has(entry.key)), ...own];
  }

  #noteDuplicate(path: readonly string[], first: Place, at: Place): void {
    const field = path.join(".");
    this.duplicates.push({
      kind: "duplicate",
      message: `key ${JSON.stringify(field)} is already set on line ${first.line}`,
      at,
    });
  }
}

/** The entries that `<<: *base` brings in; of several bases the first one wins. */
function mergedEntries(value: Tree): TreeEntry[] {
  const bases = value.kind === "list" ? value.items : [value];
  return bases.toReversed().flatMap((base) => {
    if (base.kind !== "map") throw new UnreadableError("<< wants a map, or a list of maps", base.at);
    return base.entries;
  });
}

function keyText(key: Tree): string {
  switch (key.kind) {
    case "string":
      return key.value;
    case "int":
    case "float":
    case "bool":
      return String(key.value);
    default:
      throw new UnreadableError("a key must be a string, a number or a boolean", key.at);
  }
}
