import { Client, connectivityState, credentials, Metadata } from "@grpc/grpc-js";
import { onAbort } from "../base/index.ts";
import { GrpcError, toGrpcError } from "./grpc-error.ts";

interface MessageCodec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Message;
}

/** The shape of one method in a generated service definition. */
export interface MethodDefinition {
  readonly name: string;
  readonly requestType: MessageCodec<unknown>;
  readonly responseType: MessageCodec<unknown>;
  readonly responseStream: boolean;
}

export type RequestOf<Method extends MethodDefinition> =
  Method["requestType"] extends MessageCodec<infer Request> ? Request : never;
export type ResponseOf<Method extends MethodDefinition> =
  Method["responseType"] extends MessageCodec<infer Response> ? Response : never;

const usualMessageBytes = 16 * 1024 * 1024;

export interface WireCall {
  /** Named in the error when the call fails. */
  readonly operation: string;
  /** Wall-clock milliseconds; undefined: no deadline. */
  readonly deadline: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

type ToError = (operation: string, error: GrpcError) => Error;

/** One connection to a unix socket, kept and renewed by the gRPC library. Calls fail at once while there is none. */
export class UnixChannel {
  readonly #client: Client;
  readonly #toError: ToError;
  readonly #active = new Set<{ cancel(): void }>();
  #closed = false;

  /**
   * `toError` makes of a failure what callers are to see. `use`: a channel that is kept finds its server soon after it has
   * come back. One for a single call must not: a connection that the library tries again while the channel is being
   * closed stays open for ever. An answer of more than `maxMessageBytes` fails its call.
   */
  constructor(
    socketPath: string,
    toError: ToError,
    use: "kept" | "single call" = "kept",
    maxMessageBytes: number = usualMessageBytes,
  ) {
    this.#toError = toError;
    this.#client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
      // Go servers refuse the percent-encoded path that would otherwise be sent.
      "grpc.default_authority": "localhost",
      "grpc.max_receive_message_length": maxMessageBytes,
      ...(use === "kept" && { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1000 }),
      // Otherwise two channels to one socket would share one connection.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_http_proxy": 0,
      "grpc.enable_channelz": 0,
      "grpc.service_config_disable_resolution": 1,
    });
  }

  /** Calls in flight and later ones fail as Canceled. */
  close(): void {
    this.#closed = true;
    for (const call of this.#active) call.cancel();
    this.#client.close();
  }

  /**
   * Connects, and again whenever the connection ends; says whether somebody answers at the socket, first now and then
   * when that changes, until the channel is closed.
   */
  watchPresence(onChange: (isThere: boolean) => void): void {
    const channel = this.#client.getChannel();
    let told: boolean | undefined;
    const look = (): void => {
      if (this.#closed) return;
      const state = channel.getConnectivityState(true);
      const isThere = state === connectivityState.READY;
      if (isThere !== told) onChange(isThere);
      told = isThere;
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, look);
    };
    look();
  }

  async unary<Method extends MethodDefinition>(
    service: string,
    method: Method,
    request: RequestOf<Method>,
    { operation, deadline, signal, headers = {} }: WireCall,
  ): Promise<ResponseOf<Method>> {
    signal?.throwIfAborted();
    this.#refuseIfClosed(operation);
    const { path, encode, decode } = onTheWire(service, method);
    return await new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(
        path,
        encode,
        decode,
        request,
        metadataOf(headers),
        deadline === undefined ? {} : { deadline },
        (error, response) => {
          listening[Symbol.dispose]();
          this.#active.delete(call);
          if (error !== null) reject(this.#toError(operation, toGrpcError(error)));
          else resolve(response as ResponseOf<Method>);
        },
      );
      this.#active.add(call);
      const listening = onAbort(signal, () => {
        call.cancel();
        reject(signal?.reason);
      });
    });
  }

  /** The stream ends when the server ends it, throws when it breaks, and the signal's reason when aborted. */
  async *stream<Method extends MethodDefinition>(
    service: string,
    method: Method,
    request: RequestOf<Method>,
    { operation, deadline, signal, headers = {} }: WireCall,
  ): AsyncGenerator<ResponseOf<Method>, void> {
    signal?.throwIfAborted();
    this.#refuseIfClosed(operation);
    const { path, encode, decode } = onTheWire(service, method);
    const call = this.#client.makeServerStreamRequest(
      path,
      encode,
      decode,
      request,
      metadataOf(headers),
      deadline === undefined ? {} : { deadline },
    );
    // Cancelling a stream nobody reads any more still emits an error, which must not become an uncaught one.
    call.on("error", () => {});
    this.#active.add(call);
    using _ = onAbort(signal, () => call.cancel());
    try {
      for await (const message of call) yield message as ResponseOf<Method>;
    } catch (error) {
      signal?.throwIfAborted();
      throw this.#toError(operation, toGrpcError(error));
    } finally {
      this.#active.delete(call);
      call.cancel();
    }
  }

  #refuseIfClosed(operation: string): void {
    if (this.#closed) throw this.#toError(operation, new GrpcError("Canceled", "the client has been closed"));
  }
}

function onTheWire<Method extends MethodDefinition>(service: string, method: Method) {
  return {
    path: `/${service}/${method.name}`,
    encode: (message: RequestOf<Method>) => asBuffer(method.requestType.encode(message).finish()),
    decode: (bytes: Buffer) => method.responseType.decode(bytes) as ResponseOf<Method>,
  };
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
