import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { type BlockRequest, NbdConnection } from "./nbd.ts";
import { runProgram } from "./program.ts";

const blockBytes = 4096;

/**
 * A disk with a write cache, as real ones have: what the machine wrote since it last asked for a flush is not safe. It
 * is served to qemu over a socket, so that we decide what reaches the file when the power fails.
 */
export class VolatileDisk implements Disposable {
  readonly path: string;
  readonly socketPath: string;
  readonly #file: number;
  readonly #bytes: number;
  readonly #server: Server;
  /** The newest content of blocks that no flush has followed yet. */
  readonly #cache = new Map<number, Buffer>();
  readonly #connections = new Set<Socket>();

  private constructor(path: string) {
    this.socketPath = `${path}.sock`;
    this.path = path;
    this.#file = openSync(path, "r+");
    this.#bytes = fstatSync(this.#file).size;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async serve(path: string): Promise<VolatileDisk> {
    const disk = new VolatileDisk(path);
    await new Promise<void>((resolve, reject) => {
      disk.#server.once("error", reject).listen(disk.socketPath, resolve);
    });
    // The test ends when its machine does.
    disk.#server.unref();
    return disk;
  }

  /**
   * The power is gone: of the blocks in the cache, those that `survives` picks had reached the disk just in time, in
   * whatever order. To be called once qemu has ended. Returns how many were lost.
   */
  losePower(survives: () => boolean): number {
    for (const socket of this.#connections) socket.destroy();
    let lost = 0;
    for (const [block, content] of this.#cache) {
      if (survives()) this.#writeToFile(content, block * blockBytes);
      else lost++;
    }
    this.#cache.clear();
    return lost;
  }

  /** Makes a file as the disk's would be after a power cut now. The machine waits for its disk meanwhile. */
  async copyAfterCut(target: string, survives: () => boolean): Promise<void> {
    for (const socket of this.#connections) socket.pause();
    try {
      const survivors = [...this.#cache].filter(() => survives());
      await runProgram("cp", ["--sparse=always", "--reflink=auto", this.path, target]);
      const file = openSync(target, "r+");
      for (const [block, content] of survivors) writeSync(file, content, 0, content.length, block * blockBytes);
      closeSync(file);
    } finally {
      for (const socket of this.#connections) socket.resume();
    }
  }

  #serve(socket: Socket): void {
    this.#connections.add(socket);
    socket.on("close", () => this.#connections.delete(socket));
    // qemu was killed; what it had asked for is not missed.
    socket.on("error", () => socket.destroy());
    const connection = new NbdConnection(this.#bytes, (request) => this.#answer(request));
    socket.on("data", (chunk) => {
      for (const answer of connection.receive(chunk)) socket.write(answer);
      if (connection.isOver) socket.end();
    });
    socket.write(connection.greeting);
  }

  #answer({ type, offset, length, data, isSafe }: BlockRequest): Buffer {
    if (type === "read") return this.#read(offset, length);
    if (type === "flush") this.#flush();
    if (type === "write") this.#write(offset, data);
    if (type === "write" && isSafe) this.#flushRange(offset, length);
    return Buffer.alloc(0);
  }

  #read(offset: number, length: number): Buffer {
    const content = Buffer.alloc(length);
    readSync(this.#file, content, 0, length, offset);
    if (this.#cache.size === 0) return content;
    for (let block = Math.floor(offset / blockBytes); block * blockBytes < offset + length; block++) {
      const start = block * blockBytes - offset;
      const cached = this.#cache.get(block);
      // Of the first and last block only a part may be asked for.
      if (cached !== undefined) cached.subarray(Math.max(0, -start)).copy(content, Math.max(0, start));
    }
    return content;
  }

  #write(offset: number, data: Buffer): void {
    for (let done = 0; done < data.length; ) {
      const at = offset + done;
      const block = Math.floor(at / blockBytes);
      const within = at % blockBytes;
      const part = data.subarray(done, done + blockBytes - within);
      const isWhole = part.length === blockBytes;
      const content = isWhole ? Buffer.alloc(blockBytes) : this.#read(block * blockBytes, blockBytes);
      part.copy(content, within);
      this.#cache.set(block, content);
      done += part.length;
    }
  }

  #flush(): void {
    for (const [block, content] of this.#cache) this.#writeToFile(content, block * blockBytes);
    this.#cache.clear();
  }

  #flushRange(offset: number, length: number): void {
    for (let block = Math.floor(offset / blockBytes); block * blockBytes < offset + length; block++) {
      const content = this.#cache.get(block);
      if (content !== undefined) this.#writeToFile(content, block * blockBytes);
      this.#cache.delete(block);
    }
  }

  #writeToFile(content: Buffer, offset: number): void {
    writeSync(this.#file, content, 0, Math.min(content.length, this.#bytes - offset), offset);
  }

  [Symbol.dispose](): void {
    for (const socket of this.#connections) socket.destroy();
    this.#server.close();
    closeSync(this.#file);
  }
}
