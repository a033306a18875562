import { once } from "node:events";
import type { Duplex } from "node:stream";

/** What a frame says about its stream: nothing more will come. */
export const fin = 1;
export const frameKinds = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, headers: 8 } as const;
const headBytes = 8;
/** What the other side may put into one frame; Go's library sends at most 32 KiB. */
const longestFrame = 1024 * 1024;
const controlBit = 0x8000_0000;
const version = 0x8003;

export type SpdyFrame =
  | { readonly type: "data"; readonly id: number; readonly isLast: boolean; readonly content: Buffer }
  | { readonly type: "control"; readonly kind: number; readonly isLast: boolean; readonly content: Buffer };

/** Finds the frames in what comes from a connection, however it was cut on its way. */
export class FrameCutter {
  #chunks: Buffer[] = [];
  #size = 0;
  /** Nothing can be cut off before this many bytes are here: looking earlier would copy a slow frame again and again. */
  #needed = headBytes;

  /** Throws where the next frame is longer than anybody sends. */
  push(chunk: Buffer): readonly SpdyFrame[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return [];
    let all = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#size);
    const frames: SpdyFrame[] = [];
    for (;;) {
      this.#needed = frameLength(all);
      if (all.length < this.#needed) break;
      frames.push(frameIn(all.subarray(0, this.#needed)));
      all = all.subarray(this.#needed);
    }
    this.#chunks = [all];
    this.#size = all.length;
    return frames;
  }
}

/** How many bytes the frame takes that begins here, as far as that can be told. */
function frameLength(bytes: Buffer): number {
  if (bytes.length < headBytes) return headBytes;
  const length = bytes.readUInt32BE(4) & 0xff_ffff;
  if (length > longestFrame) throw new Error("a frame of SPDY is too long");
  return headBytes + length;
}

function frameIn(bytes: Buffer): SpdyFrame {
  const word = bytes.readUInt32BE(0);
  const isLast = ((bytes[4] ?? 0) & fin) !== 0;
  const content = bytes.subarray(headBytes);
  return (word & controlBit) === 0
    ? { type: "data", id: word, isLast, content }
    : { type: "control", kind: word & 0xffff, isLast, content };
}

/** The stream that a control frame is about. Throws where it is too short to name one. */
export function streamIn(content: Buffer): number {
  return content.readUInt32BE(0) & 0x7fff_ffff;
}

export function dataFrame(id: number, content: Buffer, flags: number): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(((flags << 24) | content.length) >>> 0, 4);
  return Buffer.concat([head, content]);
}

export function controlFrame(kind: number, content: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt16BE(version, 0);
  head.writeUInt16BE(kind, 2);
  head.writeUInt32BE(content.length, 4);
  return Buffer.concat([head, content]);
}

/** Resolves when the connection can take more, or is gone. */
export async function sendFrame(socket: Duplex, frame: Buffer): Promise<void> {
  if (socket.write(frame)) return;
  const decided = new AbortController();
  const seen = (event: string): Promise<unknown> => once(socket, event, { signal: decided.signal }).catch(() => {});
  await Promise.race([seen("drain"), seen("close")]);
  decided.abort();
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}
