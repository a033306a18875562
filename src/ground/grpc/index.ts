// gRPC over a unix socket, for the connections that speak it. Apart from base, because it loads the library.
export { callOnce } from "./call-once.ts";
export { GrpcError, type GrpcFailureCode, toGrpcError } from "./grpc-error.ts";
export { type MethodDefinition, type RequestOf, type ResponseOf, UnixChannel, type WireCall } from "./unix-channel.ts";
export { type ServedCall, type ServedService, serveUnix, serviceOf } from "./unix-server.ts";
