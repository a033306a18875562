import { BusLostError } from "./errors.ts";
import type { BusTransport } from "./transport.ts";

/** The longest line of an honest bus is its answer to NEGOTIATE_UNIX_FD or a list of mechanisms. */
const maxLineBytes = 1024;

const lineEnd = Buffer.from("\r\n");

/**
 * Says who we are. The kernel tells the bus our uid (EXTERNAL without a name, as user namespaces need it), so nothing is
 * ever asked of us that we do not have. Resolves with what the bus sent beyond its last line.
 */
export class Authentication {
  readonly #transport: BusTransport;
  readonly #done: (rest: Buffer, takesDescriptors: boolean) => void;
  #received: Buffer = Buffer.alloc(0);
  #step: "authenticating" | "negotiating" | "done" = "authenticating";

  constructor(transport: BusTransport, done: (rest: Buffer, takesDescriptors: boolean) => void) {
    this.#transport = transport;
    this.#done = done;
  }

  begin(): void {
    this.#say("\0AUTH EXTERNAL");
  }

  /** Throws when the bus does not want us, or is no bus. */
  take(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const end = this.#received.indexOf(lineEnd);
      if (end > maxLineBytes || (end < 0 && this.#received.length > maxLineBytes)) {
        throw new BusLostError("D-Bus authentication: the answer is not a line");
      }
      if (end < 0) return;
      const line = this.#received.toString("latin1", 0, end);
      this.#received = this.#received.subarray(end + lineEnd.length);
      this.#answer(line);
      if (this.#step === "done") return;
    }
  }

  #answer(line: string): void {
    const word = /^[A-Z_]+/.exec(line)?.[0];
    if (this.#step === "negotiating") this.#finish(word === "AGREE_UNIX_FD");
    else if (word === "DATA") this.#say("DATA");
    else if (word !== "OK") {
      throw new BusLostError(`D-Bus authentication: the answer is ${JSON.stringify(line.slice(0, 100))}`);
    } else if (this.#transport.takesDescriptors) {
      this.#step = "negotiating";
      this.#say("NEGOTIATE_UNIX_FD");
    } else this.#finish(false);
  }

  #finish(takesDescriptors: boolean): void {
    this.#step = "done";
    this.#say("BEGIN");
    this.#done(this.#received, takesDescriptors);
  }

  #say(line: string): void {
    this.#transport.write(Buffer.from(`${line}\r\n`, "latin1"));
  }
}
