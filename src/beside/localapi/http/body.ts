import { messageOf } from "../../../ground/base/index.ts";
import { decodeYaml } from "../../../ground/model/index.ts";
import { isObject } from "../json.ts";
import { badRequest, StatusError } from "../status-error.ts";

// Objects may be at most 1.5 MB in etcd; requests are cut off at twice that.
const maxBytes = 3 * 1024 * 1024;

export async function readBody(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      if (!Buffer.isBuffer(chunk)) continue;
      size += chunk.length;
      if (size > maxBytes) {
        throw new StatusError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${maxBytes}`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    // A client that leaves is no fault of the server's, and nobody reads this.
    throw error instanceof StatusError ? error : badRequest(`the body of the request broke off: ${messageOf(error)}`);
  }
  return Buffer.concat(chunks);
}

/** Reads JSON, YAML or protobuf, whichever the content type says. */
export async function parseBody(body: Buffer, contentType: string): Promise<unknown> {
  if (body.length === 0) return undefined;
  if (contentType.includes("application/vnd.kubernetes.protobuf")) {
    const { readProtobuf } = await import("../protobuf/read.ts");
    return readProtobuf(body);
  }
  const text = body.toString();
  // Clients send JSON also where YAML is allowed, and JSON is read a hundred times as fast.
  return contentType.includes("yaml") && !/^\s*\{/.test(text) ? await parseYaml(text) : parseJson(text);
}

/** More levels than any kind has; what is deeper only serves to exhaust the stack of who walks through it. */
const mostLevels = 200;

function parseJson(text: string): unknown {
  requireShallow(text);
  try {
    return withoutReachingOut(text, JSON.parse(text));
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw badRequest(`the body of the request is not JSON: ${messageOf(error)}`);
  }
}

function requireShallow(text: string): void {
  let level = 0;
  let isQuoted = false;
  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x22: // "
        isQuoted = !isQuoted;
        break;
      case 0x5c: // backslash
        if (isQuoted) index++;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (!isQuoted && ++level > mostLevels) throw tooDeep();
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!isQuoted) level--;
        break;
    }
  }
}

function tooDeep(): StatusError {
  return badRequest(`the body of the request has more than ${mostLevels} levels`);
}

/** Objects are merged field by field, and this one field would reach beyond them. */
function withoutReachingOut(text: string, value: unknown): unknown {
  // Only who writes it, or hides it in an escape, can have it.
  if ((text.includes("__proto__") || text.includes("\\u00")) && hasForbiddenField(value, 0)) {
    throw badRequest("no field may be named __proto__");
  }
  return value;
}

function hasForbiddenField(value: unknown, level: number): boolean {
  if (level > mostLevels) throw tooDeep();
  if (Array.isArray(value)) return value.some((item) => hasForbiddenField(item, level + 1));
  if (!isObject(value)) return false;
  return Object.hasOwn(value, "__proto__") || Object.values(value).some((item) => hasForbiddenField(item, level + 1));
}

async function parseYaml(text: string): Promise<unknown> {
  try {
    const value = await decodeYaml(text);
    if (hasForbiddenField(value, 0)) throw badRequest("no field may be named __proto__");
    return value;
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw badRequest(`the body of the request is not YAML: ${messageOf(error)}`);
  }
}
