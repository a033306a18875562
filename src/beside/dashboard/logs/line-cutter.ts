/** Longer lines are cut: nobody reads them, and a page that draws one of a megabyte stands still. */
const longestLineBytes = 16 * 1024;

/**
 * Turns bytes, in pieces of any size, into whole lines with a word before each. Of a line that is too long, and may never
 * end, no more is kept than is shown.
 */
export class LineCutter {
  readonly #before: Buffer;
  #line: Buffer[] = [];
  #length = 0;

  constructor(before: string) {
    this.#before = Buffer.from(before);
  }

  /** The lines that have ended with this piece, as bytes of their own. */
  push(piece: Buffer): Buffer {
    const out: Buffer[] = [];
    let from = 0;
    for (;;) {
      const end = piece.indexOf(0x0a, from);
      if (end < 0) break;
      this.#take(piece.subarray(from, end));
      out.push(this.#end());
      from = end + 1;
    }
    this.#take(piece.subarray(from));
    return Buffer.concat(out);
  }

  /** What is left when nothing more comes. */
  flush(): Buffer {
    return this.#length === 0 ? Buffer.alloc(0) : this.#end();
  }

  #take(part: Buffer): void {
    const room = Math.max(0, longestLineBytes - this.#length);
    this.#length += part.length;
    // A copy: the piece's memory is used again.
    if (room > 0 && part.length > 0) this.#line.push(Buffer.from(part.subarray(0, room)));
  }

  #end(): Buffer {
    const over = this.#length - longestLineBytes;
    const note = over > 0 ? ` … ${over} more bytes in this line` : "";
    const line = Buffer.concat([this.#before, ...this.#line, Buffer.from(`${note}\n`)]);
    this.#line = [];
    this.#length = 0;
    return line;
  }
}
