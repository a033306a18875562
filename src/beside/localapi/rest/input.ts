import { goQuote } from "../../../ground/base/index.ts";
import { isObject, type JsonObject } from "../json.ts";
import { apiVersionOf, type Kind } from "../kinds/index.ts";
import { type ApiObject, asApiObject } from "../object.ts";
import { DecodeError, decode } from "../schema/decode.ts";
import { badRequest, StatusError } from "../status-error.ts";
import type { WriteOptions } from "./world.ts";

/** Reads what a client sent as an object of the kind; the result has the stored form. */
export function readInput(kind: Kind, body: unknown, options: WriteOptions): ApiObject {
  const input = checkType(kind, body);
  const { value, unknownFields } = decodeAs(kind, input);
  if (unknownFields.length > 0) tell(kind, unknownFields, options);
  const object = asApiObject(value, apiVersionOf(kind), kind.kind);
  return kind.form === undefined ? object : kind.form.toStored(object);
}

function checkType(kind: Kind, body: unknown): JsonObject {
  if (!isObject(body)) throw badRequest("the body of the request must be an object");
  const { apiVersion = apiVersionOf(kind), kind: name = kind.kind } = body;
  if (apiVersion === apiVersionOf(kind) && name === kind.kind) return body;
  throw badRequest(
    `the object provided is unrecognized (${String(apiVersion)}, Kind=${String(name)}); wanted ${apiVersionOf(kind)}, Kind=${kind.kind}`,
  );
}

function decodeAs(kind: Kind, input: JsonObject): { value: JsonObject; unknownFields: readonly string[] } {
  try {
    const { value, unknownFields } = decode(input, kind.schema);
    return { value: isObject(value) ? value : {}, unknownFields };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw badRequest(`${describe(kind)}: ${error.message}`);
  }
}

const describe = ({ kind, version }: Kind): string => `${kind} in version "${version}" cannot be handled as a ${kind}`;

function tell(kind: Kind, unknownFields: readonly string[], options: WriteOptions): void {
  const texts = unknownFields.map((field) => `unknown field ${goQuote(field)}`);
  if (options.unknownFields === "refuse") {
    throw new StatusError(400, "BadRequest", `${describe(kind)}: strict decoding error: ${texts.join(", ")}`);
  }
  if (options.unknownFields === "warn") for (const text of texts) options.warn(text);
}
