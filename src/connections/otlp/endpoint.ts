import { isIP } from "node:net";
import { systemNames } from "../../ground/base/index.ts";

/** Where traces go. */
export interface CollectorEndpoint {
  /** As people wrote it. */
  readonly shown: string;
  /** In the words of the gRPC library, with an address in place of a name. */
  resolve(signal: AbortSignal): Promise<string>;
}

const usual = "localhost:4317";
/** Of gRPC, where none is given. */
const usualPort = "443";

/** The endpoint that the configuration names: HOST[:PORT], dns:[//SERVER/]HOST[:PORT] or unix:PATH. */
export function collectorEndpoint(text: string | undefined): CollectorEndpoint {
  const shown = text === undefined || text === "" ? usual : text;
  const [, path] = /^unix:(?:\/\/)?(.+)$/.exec(shown) ?? [];
  if (path !== undefined) return { shown, resolve: async () => `unix:${path}` };
  if (shown.startsWith("unix-abstract:")) {
    const problem = "abstract sockets are not spoken to; give a path or HOST:PORT";
    return { shown, resolve: () => Promise.reject(new Error(problem)) };
  }
  const { host, port } = hostAndPort(shown.replace(/^dns:(?:\/\/[^/]*\/)?/, ""));
  return {
    shown,
    resolve: async (signal) => {
      signal.throwIfAborted();
      const address = isIP(host) !== 0 ? host : ((await systemNames.resolve(host))[0]?.address ?? host);
      return isIP(address) === 6 ? `ipv6:[${address}]:${port}` : `ipv4:${address}:${port}`;
    },
  };
}

function hostAndPort(text: string): { readonly host: string; readonly port: string } {
  const [, bracketed, plain, port = usualPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  // More than one colon and no brackets: an address of IPv6 alone.
  return host === undefined ? { host: text, port: usualPort } : { host, port };
}
