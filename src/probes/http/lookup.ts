import { type LookupOptions, lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { Limiter } from "../../base/index.ts";

// getaddrinfo holds one of libuv's four threads until the name servers give up. Two of them leave the rest of the
// agent its file system, however many probes name hosts that do not resolve.
const limiter = new Limiter(2);
const never = new AbortController().signal;

/** Resolves host names for probes and hooks. */
export const boundedLookup: LookupFunction = (hostname: string, options: LookupOptions, callback) => {
  void limiter.run(
    () =>
      new Promise<void>((resolve) => {
        lookup(hostname, options, (error, address, family) => {
          resolve();
          callback(error, address as string, family);
        });
      }),
    never,
  );
};
