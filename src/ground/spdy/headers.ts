import { once } from "node:events";
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from "node:zlib";
import { spdyDictionary } from "./dictionary.ts";
import { uint32 } from "./frames.ts";

const longestBlock = 64 * 1024;
const mostHeaders = 100;

/** Headers that are no headers. */
class HeaderError extends Error {
  override readonly name = "HeaderError";
}

/** Headers of one direction; what was compressed before is needed to read what follows. */
export class HeaderReader implements Disposable {
  readonly #inflate: Inflate = createInflate({ dictionary: spdyDictionary });
  #failure: unknown;

  constructor() {
    this.#inflate.on("error", (error) => {
      this.#failure = error;
    });
  }

  async read(block: Buffer): Promise<ReadonlyMap<string, string>> {
    return parseHeaders(await through(this.#inflate, block, () => this.#failure));
  }

  [Symbol.dispose](): void {
    this.#inflate.close();
  }
}

/** The other direction. */
export class HeaderWriter implements Disposable {
  readonly #deflate: Deflate = createDeflate({ dictionary: spdyDictionary });

  async write(headers: Readonly<Record<string, string>>): Promise<Buffer> {
    const entries = Object.entries(headers);
    const parts: Buffer[] = [uint32(entries.length)];
    for (const [name, value] of entries) parts.push(...counted(name), ...counted(value));
    return await through(this.#deflate, Buffer.concat(parts), () => undefined);
  }

  [Symbol.dispose](): void {
    this.#deflate.close();
  }
}

/** What comes out for these bytes; a block that grows beyond all measure is refused. */
async function through(codec: Inflate | Deflate, bytes: Buffer, failure: () => unknown): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  const collect = (chunk: Buffer): void => {
    length += chunk.length;
    if (length <= longestBlock) chunks.push(chunk);
  };
  codec.on("data", collect);
  try {
    codec.write(bytes);
    const flushed = new Promise<void>((resolve) => codec.flush(constants.Z_SYNC_FLUSH, resolve));
    const stop = new AbortController();
    await Promise.race([flushed, once(codec, "error", { signal: stop.signal }).catch(() => {})]);
    stop.abort();
  } finally {
    codec.off("data", collect);
  }
  if (failure() !== undefined || length > longestBlock) throw new HeaderError("the headers of a stream cannot be read");
  return Buffer.concat(chunks);
}

export function parseHeaders(block: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  const number = (): number => {
    if (at + 4 > block.length) throw new HeaderError("the headers of a stream are cut off");
    at += 4;
    return block.readUInt32BE(at - 4);
  };
  const word = (): string => {
    const length = number();
    if (at + length > block.length) throw new HeaderError("the headers of a stream are cut off");
    at += length;
    return block.toString("utf8", at - length, at);
  };
  const count = number();
  if (count > mostHeaders) throw new HeaderError("a stream has too many headers");
  for (let index = 0; index < count; index++) {
    const name = word().toLowerCase();
    headers.set(name, word());
  }
  return headers;
}

function counted(word: string): [Buffer, Buffer] {
  const bytes = Buffer.from(word);
  return [uint32(bytes.length), bytes];
}
