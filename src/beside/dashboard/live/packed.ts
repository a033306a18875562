import type { ServerResponse } from "node:http";
import { pipeline, type Writable } from "node:stream";
import { constants, createGzip } from "node:zlib";

/**
 * What is written to it reaches the response packed, and at once: a packer that waits for more would hold back what is
 * live. It remembers 4 KiB of what it has written instead of 32, which repeats itself enough and keeps a viewer small.
 */
export function packedInto(response: ServerResponse): Writable {
  const packer = createGzip({ level: 3, windowBits: 12, memLevel: 5, flush: constants.Z_SYNC_FLUSH });
  // Who leaves takes the packer along; why is of no interest.
  pipeline(packer, response, () => {});
  return packer;
}
