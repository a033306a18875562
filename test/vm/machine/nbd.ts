/** What a machine asks of its disk. */
export interface BlockRequest {
  readonly type: "read" | "write" | "flush";
  readonly offset: number;
  readonly length: number;
  /** What to write. */
  readonly data: Buffer;
  /** To be on the disk for good before it is answered. */
  readonly isSafe: boolean;
}

const optionMagic = 0x49484156454f5054n;
const optionReplyMagic = 0x3e889045565a9n;
const requestMagic = 0x25609513;
const replyMagic = 0x67446698;
const options = { abort: 2, info: 6, go: 7 };
const replies = { done: 1, info: 3, unsupported: 0x80000001 };
const commands = { read: 0, write: 1, disconnect: 2, flush: 3 };
/** Has flags, can flush, and writes can ask for safety. */
const exportFlags = 1 | 4 | 8;
const headerBytes = { clientFlags: 4, option: 16, request: 28 };

/** The server's end of a connection of the network block device protocol, as far as qemu uses it; no socket, no disk. */
export class NbdConnection {
  readonly #bytes: number;
  readonly #perform: (request: BlockRequest) => Buffer;
  #step: "flags" | "options" | "requests" | "over" = "flags";
  #received: Buffer[] = [];
  #receivedBytes = 0;
  #neededBytes = headerBytes.clientFlags;

  constructor(bytes: number, perform: (request: BlockRequest) => Buffer) {
    this.#bytes = bytes;
    this.#perform = perform;
  }

  get isOver(): boolean {
    return this.#step === "over";
  }

  get greeting(): Buffer {
    return Buffer.concat([Buffer.from("NBDMAGICIHAVEOPT"), numbers(["u16", 3])]);
  }

  /** Takes what came in and returns what to send. */
  receive(chunk: Buffer): readonly Buffer[] {
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    const answers: Buffer[] = [];
    while (this.#step !== "over" && this.#receivedBytes >= this.#neededBytes) {
      const all = this.#received.length === 1 ? (this.#received[0] ?? chunk) : Buffer.concat(this.#received);
      const used = this.#take(all, answers);
      this.#received = [all.subarray(used)];
      this.#receivedBytes -= used;
    }
    return answers;
  }

  /** Handles the first message if it is there whole, and says how long it was. */
  #take(all: Buffer, answers: Buffer[]): number {
    if (this.#step === "flags") return this.#next("options", headerBytes.option, headerBytes.clientFlags);
    if (this.#step === "options") return this.#takeOption(all, answers);
    return this.#takeRequest(all, answers);
  }

  #takeOption(all: Buffer, answers: Buffer[]): number {
    if (all.readBigUInt64BE(0) !== optionMagic) throw new Error("qemu sent no option where one was expected");
    const option = all.readUInt32BE(8);
    const length = headerBytes.option + all.readUInt32BE(12);
    if (all.length < length) return this.#wait(length);
    const reply = (type: number, data: Buffer = Buffer.alloc(0)): void => {
      const header = numbers(["u64", optionReplyMagic], ["u32", option], ["u32", type], ["u32", data.length]);
      answers.push(header, data);
    };
    const isExport = option === options.go || option === options.info;
    if (isExport) reply(replies.info, numbers(["u16", 0], ["u64", BigInt(this.#bytes)], ["u16", exportFlags]));
    reply(isExport || option === options.abort ? replies.done : replies.unsupported);
    if (option === options.abort) return this.#next("over", 0, length);
    if (option === options.go) return this.#next("requests", headerBytes.request, length);
    return this.#next("options", headerBytes.option, length);
  }

  #takeRequest(all: Buffer, answers: Buffer[]): number {
    if (all.readUInt32BE(0) !== requestMagic) throw new Error("qemu sent no request where one was expected");
    const command = all.readUInt16BE(6);
    const length = all.readUInt32BE(24);
    const end = headerBytes.request + (command === commands.write ? length : 0);
    if (all.length < end) return this.#wait(end);
    if (command === commands.disconnect) return this.#next("over", 0, end);
    const type = command === commands.read ? "read" : command === commands.write ? "write" : "flush";
    if (type === "flush" && command !== commands.flush) throw new Error(`qemu sent an unknown command, ${command}`);
    const answer = this.#perform({
      type,
      offset: Number(all.readBigUInt64BE(16)),
      length,
      data: all.subarray(headerBytes.request, end),
      isSafe: (all.readUInt16BE(4) & 1) !== 0,
    });
    answers.push(numbers(["u32", replyMagic], ["u32", 0], ["u64", all.readBigUInt64BE(8)]), answer);
    return this.#next("requests", headerBytes.request, end);
  }

  #wait(bytes: number): number {
    this.#neededBytes = bytes;
    return 0;
  }

  #next(step: "options" | "requests" | "over", neededBytes: number, used: number): number {
    this.#step = step;
    this.#neededBytes = neededBytes;
    return used;
  }
}

type Field = readonly ["u16" | "u32", number] | readonly ["u64", bigint];

function numbers(...fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.map(([size, value]) => {
      const bytes = Buffer.alloc(size === "u16" ? 2 : size === "u32" ? 4 : 8);
      if (typeof value === "bigint") bytes.writeBigUInt64BE(value);
      else if (size === "u16") bytes.writeUInt16BE(value);
      else bytes.writeUInt32BE(value);
      return bytes;
    }),
  );
}
