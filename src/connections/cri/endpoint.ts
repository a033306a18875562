/** Where a runtime listens. `deprecated` is what to tell the user about how they wrote it, if anything. */
export interface CriEndpoint {
  readonly socketPath: string;
  readonly deprecated: string | undefined;
}

/** An endpoint nobody can listen on; the message names the endpoint and what is accepted. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly endpoint: string;

  constructor(endpoint: string, problem: string) {
    super(`CRI endpoint "${endpoint}": ${problem}; want unix:///path/to/runtime.sock`);
    this.endpoint = endpoint;
  }
}

/** Reads `unix:///path`, or a bare path as older configurations have it. */
export function parseEndpoint(endpoint: string): CriEndpoint {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(endpoint)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    if (endpoint === "") throw new EndpointError(endpoint, "is empty");
    const deprecated = `Using "${endpoint}" as CRI endpoint is deprecated, please use the full URL "unix://${endpoint}"`;
    return { socketPath: absolute(endpoint, endpoint), deprecated };
  }
  if (scheme === "unix") {
    const rest = endpoint.slice("unix:".length);
    // unix://host/path has no meaning; only an empty host leaves the path absolute.
    const socketPath = rest.startsWith("//") ? rest.slice(2) : rest;
    return { socketPath: absolute(endpoint, socketPath), deprecated: undefined };
  }
  if (scheme === "tcp") throw new EndpointError(endpoint, "only support unix socket endpoint");
  throw new EndpointError(endpoint, `protocol "${scheme}" not supported`);
}

function absolute(endpoint: string, socketPath: string): string {
  if (!socketPath.startsWith("/")) throw new EndpointError(endpoint, "the socket path is not absolute");
  return socketPath;
}
