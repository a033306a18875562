// SPDY/3.1, both sides of it: as much as exec, attach and port-forward need. Knows nothing of Kubernetes.
export { SpdyConnection, type SpdyStream } from "./client.ts";
export { type ServedStream, SpdySession } from "./server.ts";
