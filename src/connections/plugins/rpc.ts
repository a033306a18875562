import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { messageOf } from "../../ground/base/index.ts";

interface MessageCodec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Message;
}

interface MethodDefinition {
  readonly name: string;
  readonly requestType: MessageCodec<unknown>;
  readonly responseType: MessageCodec<unknown>;
}

type RequestOf<Method extends MethodDefinition> =
  Method["requestType"] extends MessageCodec<infer Request> ? Request : never;
type ResponseOf<Method extends MethodDefinition> =
  Method["responseType"] extends MessageCodec<infer Response> ? Response : never;

/** As Go prints them, because that text reaches users. */
const codes = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;

export type PluginCode = (typeof codes)[number];

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

const maxMessageBytes = 16 * 1024 * 1024;

/** One call on a connection of its own: plugins come and go, and a connection kept for long would not notice. */
export async function callPlugin<Method extends MethodDefinition>(
  socketPath: string,
  service: string,
  method: Method,
  request: RequestOf<Method>,
  { deadline, signal }: { readonly deadline: number; readonly signal: AbortSignal },
): Promise<ResponseOf<Method>> {
  signal.throwIfAborted();
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    // Go servers refuse the percent-encoded path that would otherwise be sent.
    "grpc.default_authority": "localhost",
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
  });
  try {
    return await new Promise((resolve, reject) => {
      const onAbort = (): void => {
        call.cancel();
        reject(signal.reason);
      };
      const call = client.makeUnaryRequest(
        `/${service}/${method.name}`,
        (message: RequestOf<Method>) => Buffer.from(method.requestType.encode(message).finish()),
        (bytes) => method.responseType.decode(bytes) as ResponseOf<Method>,
        request,
        new Metadata(),
        { deadline },
        (error, response) => {
          signal.removeEventListener("abort", onAbort);
          if (error !== null) {
            reject(
              new PluginError(method.name, codes[error.code] ?? "Unknown", error.details || messageOf(error), error),
            );
          } else resolve(response as ResponseOf<Method>);
        },
      );
      signal.addEventListener("abort", onAbort, { once: true });
    });
  } finally {
    client.close();
  }
}
