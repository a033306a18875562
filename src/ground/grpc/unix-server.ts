import { once } from "node:events";
import { rename, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { cutText, grpcNumberOf, messageOf, outliveFailedAccepts } from "../base/index.ts";
import { GrpcError } from "./grpc-error.ts";
import type { MethodDefinition } from "./unix-channel.ts";

interface GeneratedService {
  readonly fullName: string;
  readonly methods: Readonly<Record<string, MethodDefinition>>;
}

/** The methods of a generated service that answer with one message; one that throws GrpcError chooses its code. */
export type UnaryMethods<Service extends GeneratedService> = {
  readonly [Name in keyof Service["methods"]]: (
    request: ReturnType<Service["methods"][Name]["requestType"]["decode"]>,
  ) => Promise<Parameters<Service["methods"][Name]["responseType"]["encode"]>[0]>;
};

/** What a method may know of its call. */
export interface ServedCall {
  /** Aborted when the client gives up. */
  readonly signal: AbortSignal;
}

/** One message, or for a server stream the messages as they come. */
type Answer = (request: never, call: ServedCall) => Promise<unknown> | AsyncIterable<unknown>;

export interface ServedService {
  readonly definition: GeneratedService;
  readonly methods: Readonly<Record<string, Answer>>;
}

export function serviceOf<Service extends GeneratedService>(
  definition: Service,
  methods: UnaryMethods<Service>,
): ServedService {
  return { definition, methods: methods as ServedService["methods"] };
}

export interface UnixServerSettings {
  readonly maxRequestBytes: number;
  readonly maxConnections: number;
  /** Calls of one connection that go on at the same time; undefined: 100. */
  readonly callsAtOnce?: number;
  /** Asked before each call; false: it is refused for now. */
  readonly mayAnswer?: () => boolean;
}

/**
 * Answers gRPC calls on a unix socket until the signal is aborted. The socket appears under its name when somebody
 * answers there, in place of one that an earlier run left.
 */
export async function serveUnix(
  socketPath: string,
  services: readonly ServedService[],
  settings: UnixServerSettings,
): Promise<AsyncDisposable> {
  const server = new Server({
    "grpc.max_receive_message_length": settings.maxRequestBytes,
    "grpc.max_concurrent_streams": settings.callsAtOnce ?? 100,
    "grpc.enable_channelz": 0,
  });
  for (const { definition, methods } of services) {
    server.addService(wireDefinition(definition), wireMethods(definition, methods, settings.mayAnswer ?? (() => true)));
  }
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    connections.injectConnection(socket);
  });
  listener.maxConnections = settings.maxConnections;
  const unfinished = `${socketPath}.new`;
  await rm(unfinished, { force: true });
  listener.listen(unfinished);
  await once(listener, "listening");
  outliveFailedAccepts(listener);
  await rename(unfinished, socketPath);
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(listener, "close");
      listener.close();
      for (const socket of sockets) socket.destroy();
      connections.destroy();
      server.forceShutdown();
      await closed;
      await rm(socketPath, { force: true });
    },
  };
}

function wireDefinition({ fullName, methods }: GeneratedService): ServiceDefinition {
  const entries = Object.entries(methods).map(([key, { name, requestType, responseType, responseStream }]) => [
    key,
    {
      path: `/${fullName}/${name}`,
      requestStream: false,
      responseStream,
      requestSerialize: (message: unknown) => Buffer.from(requestType.encode(message).finish()),
      requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
      responseSerialize: (message: unknown) => Buffer.from(responseType.encode(message).finish()),
      responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
    },
  ]);
  return Object.fromEntries(entries);
}

function wireMethods(
  definition: GeneratedService,
  methods: ServedService["methods"],
  mayAnswer: () => boolean,
): UntypedServiceImplementation {
  const implementation: UntypedServiceImplementation = {};
  for (const [name, answer] of Object.entries(methods)) {
    const handle = definition.methods[name]?.responseStream
      ? streamed(answer as (request: never, call: ServedCall) => AsyncIterable<unknown>)
      : unary(answer as (request: never, call: ServedCall) => Promise<unknown>, mayAnswer);
    implementation[name] = handle as UntypedServiceImplementation[string];
  }
  return implementation;
}

function unary(
  answer: (request: never, call: ServedCall) => Promise<unknown>,
  mayAnswer: () => boolean,
): handleUnaryCall<never, unknown> {
  return (call, callback) => {
    if (!mayAnswer()) {
      callback({ code: grpcNumberOf("ResourceExhausted"), details: "rejected by rate limit" });
      return;
    }
    const calling = new AbortController();
    call.on("cancelled", () => calling.abort(clientLeft()));
    answer(call.request, { signal: calling.signal }).then(
      (response) => callback(null, response),
      (error: unknown) => callback(statusOf(error)),
    );
  };
}

/** A client that reads slowly is waited for. */
function streamed(
  answer: (request: never, call: ServedCall) => AsyncIterable<unknown>,
): handleServerStreamingCall<never, unknown> {
  return (call) => {
    const calling = new AbortController();
    const leave = (): void => calling.abort(clientLeft());
    call.on("cancelled", leave).on("error", leave);
    const pump = async (): Promise<void> => {
      for await (const item of answer(call.request, { signal: calling.signal })) {
        if (!call.write(item)) await once(call, "drain", { signal: calling.signal });
      }
    };
    pump().then(
      () => call.end(),
      (error: unknown) => call.destroy(failureOf(error)),
    );
  };
}

function failureOf(error: unknown): Error {
  const status = statusOf(error);
  return Object.assign(new Error(status.details), status);
}

function clientLeft(): DOMException {
  return new DOMException("the client gave up", "AbortError");
}

/**
 * What went wrong travels in the head of an answer, three signs for each byte that is no plain letter, and clients take
 * about 64 KiB of that. The library sends nothing at all when it is more, and the call would never end.
 */
const longestDetails = 12 * 1024;

function statusOf(error: unknown): { code: number; details: string } {
  const code = error instanceof GrpcError ? error.code : "Unknown";
  return { code: grpcNumberOf(code), details: cutText(messageOf(error), longestDetails) };
}
