import { messageOf } from "../../ground/base/index.ts";
import {
  type GrpcError,
  type GrpcFailureCode,
  type MethodDefinition,
  type RequestOf,
  type ResponseOf,
  UnixChannel,
} from "../../ground/grpc/index.ts";

export type PluginCode = GrpcFailureCode;

/** After these the plugin may or may not have done what it was asked for. */
const uncertain: ReadonlySet<PluginCode> = new Set([
  "Canceled",
  "DeadlineExceeded",
  "Unavailable",
  "ResourceExhausted",
  "Aborted",
]);

/** A plugin refused or failed a call, or did not answer. Its message is the text users know. */
export class PluginError extends Error {
  override readonly name = "PluginError";
  readonly method: string;
  readonly code: PluginCode;

  constructor(method: string, code: PluginCode, details: string, cause?: unknown) {
    super(`rpc error: code = ${code} desc = ${details}`, { cause });
    this.method = method;
    this.code = code;
  }

  /** True when what was asked for may have been done all the same. */
  get isUncertain(): boolean {
    return uncertain.has(this.code);
  }
}

/** One call on a connection of its own: plugins come and go, and a connection kept for long would not notice. */
export async function callPlugin<Method extends MethodDefinition>(
  socketPath: string,
  service: string,
  method: Method,
  request: RequestOf<Method>,
  { deadline, signal, maxBytes }: PluginCall,
): Promise<ResponseOf<Method>> {
  const channel = new UnixChannel(socketPath, toPluginError, "single call", maxBytes);
  try {
    return await channel.unary(service, method, request, { operation: method.name, deadline, signal });
  } finally {
    channel.close();
  }
}

interface PluginCall {
  /** Wall-clock milliseconds. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** The most that the plugin may answer; undefined: what any answer may have. */
  readonly maxBytes?: number;
}

/** What a plugin goes on telling, on a connection of its own that ends with it. */
export async function* watchPlugin<Method extends MethodDefinition>(
  socketPath: string,
  service: string,
  method: Method,
  request: RequestOf<Method>,
  { signal, maxBytes }: Omit<PluginCall, "deadline">,
): AsyncGenerator<ResponseOf<Method>, void> {
  const channel = new UnixChannel(socketPath, toPluginError, "single call", maxBytes);
  try {
    yield* channel.stream(service, method, request, { operation: method.name, deadline: undefined, signal });
  } finally {
    channel.close();
  }
}

export function toPluginError(method: string, { code, message, cause }: GrpcError): PluginError {
  return new PluginError(method, code, message || messageOf(cause), cause);
}
