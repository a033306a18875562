import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import {
  type CallOptions,
  criCodeOf,
  grpcStatusOf,
  type ImageService,
  ImageServiceDefinition,
  type RuntimeService,
  RuntimeServiceDefinition,
} from "../../connections/cri/index.ts";
import { messageOf } from "../../ground/base/index.ts";

/** Methods left out answer Unimplemented, as an older runtime would. */
export interface ServedServices {
  readonly runtime?: Partial<RuntimeService>;
  readonly images?: Partial<ImageService>;
}

export interface ServedRuntime extends AsyncDisposable {
  /** The endpoint in the form configurations have it. */
  readonly endpoint: string;
  /** Breaks every connection at once, as a killed runtime does. */
  kill(): Promise<void>;
}

const maxMessageBytes = 16 * 1024 * 1024;

/** Offers CRI services on a unix socket, so that anything that speaks CRI can talk to them. */
export async function serveRuntime(services: ServedServices, socketPath: string): Promise<ServedRuntime> {
  const server = new Server({ "grpc.max_receive_message_length": maxMessageBytes, "grpc.enable_channelz": 0 });
  for (const [definition, service] of [
    [RuntimeServiceDefinition, services.runtime],
    [ImageServiceDefinition, services.images],
  ] as const) {
    if (service !== undefined) server.addService(wireDefinition(definition), wireImplementation(definition, service));
  }
  // The sockets are ours rather than the library's: its way of closing them tells the calls in flight that they were
  // cancelled, which a killed runtime has no time for.
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    connections.injectConnection(socket);
  });
  // A runtime that was killed leaves its socket behind, and its successor clears it away.
  await rm(socketPath, { force: true });
  listener.listen(socketPath);
  await once(listener, "listening");
  const kill = async (): Promise<void> => {
    if (!listener.listening) return;
    const closed = once(listener, "close");
    listener.close();
    for (const socket of sockets) socket.destroy();
    connections.destroy();
    server.forceShutdown();
    await closed;
  };
  return { endpoint: `unix://${socketPath}`, kill, [Symbol.asyncDispose]: kill };
}

type GeneratedDefinition = typeof RuntimeServiceDefinition | typeof ImageServiceDefinition;

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

interface GeneratedMethod {
  readonly name: string;
  readonly requestType: Codec;
  readonly responseType: Codec;
  readonly responseStream: boolean;
}

function methodsOf(definition: GeneratedDefinition): [string, GeneratedMethod][] {
  return Object.entries(definition.methods);
}

function wireDefinition(definition: GeneratedDefinition): ServiceDefinition {
  const methods = methodsOf(definition).map(([key, { name, requestType, responseType, responseStream }]) => [
    key,
    {
      path: `/${definition.fullName}/${name}`,
      requestStream: false,
      responseStream,
      requestSerialize: (message: unknown) => Buffer.from(requestType.encode(message).finish()),
      requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
      responseSerialize: (message: unknown) => Buffer.from(responseType.encode(message).finish()),
      responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
    },
  ]);
  return Object.fromEntries(methods) as ServiceDefinition;
}

type UnaryMethod = (request: unknown, options: CallOptions) => Promise<unknown>;
type StreamMethod = (request: unknown, options: CallOptions) => AsyncIterable<unknown>;

function wireImplementation(
  definition: GeneratedDefinition,
  service: Partial<RuntimeService> | Partial<ImageService>,
): UntypedServiceImplementation {
  const implementation: UntypedServiceImplementation = {};
  for (const [key, { responseStream }] of methodsOf(definition)) {
    const method: unknown = Reflect.get(service, key);
    if (typeof method !== "function") continue;
    const bound: unknown = method.bind(service);
    implementation[key] = responseStream ? streamHandler(bound as StreamMethod) : unaryHandler(bound as UnaryMethod);
  }
  return implementation;
}

function unaryHandler(method: UnaryMethod): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    const calling = new AbortController();
    call.on("cancelled", () => calling.abort());
    method(call.request, { signal: calling.signal }).then(
      (response) => callback(null, response),
      (error: unknown) => callback(statusOf(error)),
    );
  };
}

function streamHandler(method: StreamMethod): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    const calling = new AbortController();
    call.on("cancelled", () => calling.abort());
    const pump = async (): Promise<void> => {
      for await (const item of method(call.request, { signal: calling.signal })) call.write(item);
    };
    pump().then(
      () => call.end(),
      (error: unknown) => call.destroy(Object.assign(new Error(messageOf(error)), statusOf(error))),
    );
  };
}

function statusOf(error: unknown): { code: number; details: string } {
  return { code: grpcStatusOf(criCodeOf(error) ?? "Unknown"), details: messageOf(error) };
}
