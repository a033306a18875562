import { once } from "node:events";
import { rename, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import {
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { grpcNumberOf, messageOf } from "../base/index.ts";
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

export interface ServedService {
  readonly definition: GeneratedService;
  readonly methods: Readonly<Record<string, (request: never) => Promise<unknown>>>;
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
    "grpc.max_concurrent_streams": 100,
    "grpc.enable_channelz": 0,
  });
  for (const { definition, methods } of services) {
    server.addService(wireDefinition(definition), wireMethods(methods, settings.mayAnswer ?? (() => true)));
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
  const entries = Object.entries(methods).map(([key, { name, requestType, responseType }]) => [
    key,
    {
      path: `/${fullName}/${name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (message: unknown) => Buffer.from(requestType.encode(message).finish()),
      requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
      responseSerialize: (message: unknown) => Buffer.from(responseType.encode(message).finish()),
      responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
    },
  ]);
  return Object.fromEntries(entries);
}

function wireMethods(methods: ServedService["methods"], mayAnswer: () => boolean): UntypedServiceImplementation {
  const implementation: UntypedServiceImplementation = {};
  for (const [name, answer] of Object.entries(methods)) {
    const handle: handleUnaryCall<never, unknown> = ({ request }, callback) => {
      if (!mayAnswer()) {
        callback({ code: grpcNumberOf("ResourceExhausted"), details: "rejected by rate limit" });
        return;
      }
      answer(request).then(
        (response) => callback(null, response),
        (error: unknown) => {
          const code = error instanceof GrpcError ? error.code : "Unknown";
          callback({ code: grpcNumberOf(code), details: messageOf(error) });
        },
      );
    };
    implementation[name] = handle as UntypedServiceImplementation[string];
  }
  return implementation;
}
