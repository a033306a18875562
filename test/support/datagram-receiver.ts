import { rmSync } from "node:fs";
import koffi from "koffi";

/** The other end of NOTIFY_SOCKET: a unix datagram socket, which Node itself cannot open. */
export class DatagramReceiver implements AsyncDisposable {
  readonly #fd: number;
  readonly #name: string;
  readonly #messages: string[] = [];

  private constructor(fd: number, name: string) {
    this.#fd = fd;
    this.#name = name;
  }

  /** `name` is a path, or begins with `@` for an abstract socket. */
  static async listen(name: string): Promise<DatagramReceiver> {
    const fd: number = libc.func("int socket(int, int, int)")(1, 0o2004002, 0);
    const bytes = Buffer.from(name.startsWith("@") ? `\0${name.slice(1)}` : `${name}\0`);
    const address = Buffer.concat([Buffer.from([1, 0]), bytes]);
    const bound: number = libc.func("int bind(int, const void *, uint32_t)")(fd, address, address.length);
    if (bound !== 0) throw new Error(`cannot bind ${name}: errno ${koffi.errno()}`);
    return new DatagramReceiver(fd, name);
  }

  /** All datagrams so far, oldest first. */
  received(): readonly string[] {
    const buffer = Buffer.alloc(4096);
    const recv: (fd: number, buffer: Buffer, size: number, flags: number) => number = libc.func(
      "long recv(int, void *, size_t, int)",
    );
    for (;;) {
      const length = recv(this.#fd, buffer, buffer.length, 0);
      if (length < 0) return this.#messages;
      this.#messages.push(buffer.subarray(0, length).toString());
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    libc.func("int close(int)")(this.#fd);
    if (!this.#name.startsWith("@")) rmSync(this.#name, { force: true });
  }
}

const libc = koffi.load(null);
