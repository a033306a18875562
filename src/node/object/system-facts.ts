import { networkInterfaces } from "node:os";
import { defaultAddress } from "../../connections/host/index.ts";
import { type Clock, systemNames } from "../../ground/base/index.ts";
import type { NetworkFacts } from "./ports.ts";

// A resolver that does not answer must not keep the node from being ready.
const longestLookupMs = 2_000;

/** The network as this machine sees it. */
export function systemNetwork(clock: Clock): NetworkFacts {
  return {
    ownAddresses: () =>
      new Set(Object.values(networkInterfaces()).flatMap((infos) => (infos ?? []).map(({ address }) => address))),
    lookup: async (host, signal) => {
      signal.throwIfAborted();
      const found = systemNames.resolve(host).then(
        (addresses) => addresses.map(({ address }) => address),
        () => [],
      );
      const stop = new AbortController();
      const late = clock.sleep(longestLookupMs, stop.signal).then(
        () => [],
        () => [],
      );
      try {
        return await Promise.race([found, late]);
      } finally {
        stop.abort();
      }
    },
    defaultAddress: (family) => defaultAddress(family),
  };
}
