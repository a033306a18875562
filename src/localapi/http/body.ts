import { messageOf } from "../../base/index.ts";
import { decodeYaml } from "../../model/index.ts";
import { ApiError, badRequest } from "../api-error.ts";

// Objects may be at most 1.5 MB in etcd; requests are cut off at twice that.
const maxBytes = 3 * 1024 * 1024;

export async function readBody(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > maxBytes) {
      throw new ApiError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${maxBytes}`);
    }
    chunks.push(chunk);
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
  // Objects are merged field by field, and this one field would reach beyond them.
  if (text.includes('"__proto__"') || /^\s*__proto__\s*:/m.test(text)) {
    throw badRequest("no field may be named __proto__");
  }
  return contentType.includes("yaml") ? await parseYaml(text) : parseJson(text);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`the body of the request is not JSON: ${messageOf(error)}`);
  }
}

async function parseYaml(text: string): Promise<unknown> {
  try {
    return await decodeYaml(text);
  } catch (error) {
    throw badRequest(`the body of the request is not YAML: ${messageOf(error)}`);
  }
}
