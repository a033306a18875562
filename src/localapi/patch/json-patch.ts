import { jsonEqual } from "../../model/index.ts";
import { isObject } from "../json.ts";
import { PatchError } from "./patch-error.ts";

/** JSON patch (RFC 6902). The given document stays as it is. */
export function jsonPatch(document: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw new PatchError("malformed", "A JSON patch must be a list of operations");
  let current = structuredClone(document);
  for (const operation of operations) current = apply(current, operation);
  return current;
}

function apply(document: unknown, operation: unknown): unknown {
  if (!isObject(operation)) throw new PatchError("malformed", "An operation of a JSON patch must be an object");
  const { op, path, from, value } = operation;
  const target = tokensOf(path);
  switch (op) {
    case "add":
      return put(document, target, structuredClone(value), "insert");
    case "replace":
      read(document, target);
      return put(document, target, structuredClone(value), "overwrite");
    case "remove":
      return take(document, target);
    case "test":
      if (!jsonEqual(read(document, target), value)) {
        throw new PatchError("unfit", `testing value ${String(path)} failed`);
      }
      return document;
    case "copy":
      return put(document, target, structuredClone(read(document, tokensOf(from))), "insert");
    case "move": {
      const moved = read(document, tokensOf(from));
      return put(take(document, tokensOf(from)), target, moved, "insert");
    }
    default:
      throw new PatchError("malformed", `Unexpected kind of operation: ${JSON.stringify(op)}`);
  }
}

function tokensOf(pointer: unknown): readonly string[] {
  if (pointer === "") return [];
  if (typeof pointer !== "string" || !pointer.startsWith("/")) {
    throw new PatchError("malformed", `${JSON.stringify(pointer)} is not a JSON pointer`);
  }
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(document: unknown, tokens: readonly string[]): unknown {
  let found = document;
  for (const token of tokens) {
    if (Array.isArray(found)) found = found[indexOf(token, found.length - 1, tokens)];
    else if (isObject(found) && Object.hasOwn(found, token)) found = found[token];
    else throw missing(tokens);
  }
  return found;
}

function put(document: unknown, tokens: readonly string[], value: unknown, mode: "insert" | "overwrite"): unknown {
  const last = tokens.at(-1);
  if (last === undefined) return value;
  const parent = read(document, tokens.slice(0, -1));
  if (Array.isArray(parent)) {
    if (mode === "overwrite") parent[indexOf(last, parent.length - 1, tokens)] = value;
    else parent.splice(last === "-" ? parent.length : indexOf(last, parent.length, tokens), 0, value);
  } else if (isObject(parent)) Object.assign(parent, Object.fromEntries([[last, value]]));
  else throw missing(tokens);
  return document;
}

function take(document: unknown, tokens: readonly string[]): unknown {
  const last = tokens.at(-1);
  if (last === undefined) throw new PatchError("malformed", "A JSON patch can't remove the whole object");
  read(document, tokens);
  const parent = read(document, tokens.slice(0, -1));
  if (Array.isArray(parent)) parent.splice(indexOf(last, parent.length - 1, tokens), 1);
  else if (isObject(parent)) Reflect.deleteProperty(parent, last);
  return document;
}

function indexOf(token: string, max: number, tokens: readonly string[]): number {
  const index = /^(0|[1-9]\d*)$/.test(token) ? Number(token) : Number.NaN;
  if (!(index <= max)) throw missing(tokens);
  return index;
}

function missing(tokens: readonly string[]): PatchError {
  return new PatchError("unfit", `doc is missing path: /${tokens.join("/")}: missing value`);
}
