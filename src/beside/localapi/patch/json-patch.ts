import { jsonEqual } from "../../../ground/model/index.ts";
import { isObject } from "../json.ts";
import { PatchError } from "./patch-error.ts";

// As upstream: what is copied is not in the body, and each copy may hold all copies before it.
const mostOperations = 10_000;
const mostCopiedBytes = 3 * 1024 * 1024;
/** Items that make room or close a gap in a list, over all operations: some tenths of a second. */
const mostMovedItems = 50_000_000;

/** What one patch may still do. */
interface Budget {
  copiedBytes: number;
  movedItems: number;
}

/** JSON patch (RFC 6902). The given document stays as it is. */
export function jsonPatch(document: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw new PatchError("malformed", "A JSON patch must be a list of operations");
  if (operations.length > mostOperations) {
    const found = `found ${operations.length} operations, at most ${mostOperations} are possible`;
    throw new PatchError("too large", `The allowed maximum operations in a JSON patch is exceeded: ${found}`);
  }
  const budget: Budget = { copiedBytes: mostCopiedBytes, movedItems: mostMovedItems };
  let current = structuredClone(document);
  for (const operation of operations) current = apply(current, operation, budget);
  return current;
}

function copied(value: unknown, budget: Budget): unknown {
  const text = JSON.stringify(value);
  budget.copiedBytes -= text.length;
  if (budget.copiedBytes < 0) {
    const message = `The copies of a JSON patch are too large: at most ${mostCopiedBytes} bytes are possible`;
    throw new PatchError("too large", message);
  }
  return JSON.parse(text);
}

function splice(list: unknown[], budget: Budget, index: number, removed: number, ...added: readonly unknown[]): void {
  budget.movedItems -= list.length - index;
  if (budget.movedItems < 0) throw new PatchError("too large", "A JSON patch moves too many items of lists");
  list.splice(index, removed, ...added);
}

function apply(document: unknown, operation: unknown, budget: Budget): unknown {
  if (!isObject(operation)) throw new PatchError("malformed", "An operation of a JSON patch must be an object");
  const { op, path, from, value } = operation;
  const target = tokensOf(path);
  switch (op) {
    case "add":
      return put(document, target, structuredClone(value), "insert", budget);
    case "replace":
      read(document, target);
      return put(document, target, structuredClone(value), "overwrite", budget);
    case "remove":
      return take(document, target, budget);
    case "test":
      if (!jsonEqual(read(document, target), value)) {
        throw new PatchError("unfit", `testing value ${String(path)} failed`);
      }
      return document;
    case "copy":
      return put(document, target, copied(read(document, tokensOf(from)), budget), "insert", budget);
    case "move": {
      const moved = read(document, tokensOf(from));
      return put(take(document, tokensOf(from), budget), target, moved, "insert", budget);
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
  const tokens = pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  // What is put there would seem to be in the object, to every check, and not be stored with it.
  if (tokens.includes("__proto__")) throw new PatchError("malformed", "no field may be named __proto__");
  return tokens;
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

function put(
  document: unknown,
  tokens: readonly string[],
  value: unknown,
  mode: "insert" | "overwrite",
  budget: Budget,
): unknown {
  const last = tokens.at(-1);
  if (last === undefined) return value;
  const parent = read(document, tokens.slice(0, -1));
  if (Array.isArray(parent)) {
    if (mode === "overwrite") parent[indexOf(last, parent.length - 1, tokens)] = value;
    else splice(parent, budget, last === "-" ? parent.length : indexOf(last, parent.length, tokens), 0, value);
  } else if (isObject(parent)) Object.assign(parent, Object.fromEntries([[last, value]]));
  else throw missing(tokens);
  return document;
}

function take(document: unknown, tokens: readonly string[], budget: Budget): unknown {
  const last = tokens.at(-1);
  if (last === undefined) throw new PatchError("malformed", "A JSON patch can't remove the whole object");
  read(document, tokens);
  const parent = read(document, tokens.slice(0, -1));
  if (Array.isArray(parent)) splice(parent, budget, indexOf(last, parent.length - 1, tokens), 1);
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
