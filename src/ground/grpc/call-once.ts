import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { onAbort } from "../base/index.ts";
import { toGrpcError } from "./grpc-error.ts";
import type { MethodDefinition, RequestOf, ResponseOf } from "./unix-channel.ts";

interface CallOnceOptions {
  /** Wall-clock milliseconds. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  readonly maxMessageBytes: number;
}

/**
 * One call on a connection of its own to an address (`ipv4:…`, `ipv6:…`, `unix:…`), for servers that are called seldom:
 * between calls there is nothing that has to be kept, watched or connected again.
 */
export async function callOnce<
  Service extends { readonly fullName: string; readonly methods: Readonly<Record<string, MethodDefinition>> },
  Name extends keyof Service["methods"] & string,
>(
  target: string,
  service: Service,
  name: Name,
  request: RequestOf<Service["methods"][Name]>,
  { deadline, signal, maxMessageBytes }: CallOnceOptions,
): Promise<ResponseOf<Service["methods"][Name]>> {
  signal.throwIfAborted();
  const method = service.methods[name] as MethodDefinition;
  const client = new Client(target, credentials.createInsecure(), {
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
    "grpc.enable_retries": 0,
    "grpc.service_config_disable_resolution": 1,
  });
  try {
    return await new Promise((resolve, reject) => {
      const call = client.makeUnaryRequest(
        `/${service.fullName}/${method.name}`,
        (message: RequestOf<Service["methods"][Name]>) => Buffer.from(method.requestType.encode(message).finish()),
        (bytes: Buffer) => method.responseType.decode(bytes) as ResponseOf<Service["methods"][Name]>,
        request,
        new Metadata(),
        { deadline },
        (error, response) => {
          listening[Symbol.dispose]();
          if (error !== null) reject(toGrpcError(error));
          else resolve(response as ResponseOf<Service["methods"][Name]>);
        },
      );
      const listening = onAbort(signal, () => {
        call.cancel();
        reject(signal.reason);
      });
    });
  } finally {
    client.close();
  }
}
