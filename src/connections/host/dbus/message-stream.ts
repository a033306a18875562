import { decodeMessage, messageLength, type ReceivedMessage } from "./messages.ts";

/** Cuts a stream of bytes into messages. Throws for what is no message, and for one that is too large. */
export class MessageStream {
  #chunks: Buffer[] = [];
  #size = 0;
  /** Nothing can be cut off before this many bytes are here: looking earlier would copy a slow message again and again. */
  #needed = 1;

  *take(bytes: Buffer): Generator<ReceivedMessage> {
    this.#chunks.push(bytes);
    this.#size += bytes.length;
    if (this.#size < this.#needed) return;
    let all = this.#chunks.length === 1 ? bytes : Buffer.concat(this.#chunks, this.#size);
    for (;;) {
      const length = messageLength(all);
      this.#needed = length ?? all.length + 1;
      if (length === undefined || all.length < length) break;
      yield decodeMessage(all.subarray(0, length));
      all = all.subarray(length);
    }
    this.#chunks = [all];
    this.#size = all.length;
  }
}
