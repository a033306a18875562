import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { systemClock, type Timer } from "../../ground/base/index.ts";
import { loadSyscalls, type Syscalls } from "./syscalls.ts";

/**
 * Calls `tell` whenever the descriptor has news, without a thread that waits for it: Node's loop does. Node can only wait
 * for what it takes for a pipe or a socket, so it is shown a pipe, which then becomes the descriptor's readiness. Reading
 * that is an error, by which Node tells that there are news; each time, another pipe takes its place.
 *
 * The descriptor stays the caller's. An agent that has no descriptors left hears nothing for a while, and looks again.
 */
export async function onNews(of: number, news: "readable" | "urgent", tell: () => void): Promise<Disposable> {
  return new ReadinessWatch(await loadSyscalls(), of, news, tell);
}

const tryAgainMs = 1_000;

class ReadinessWatch implements Disposable {
  readonly #calls: Syscalls;
  readonly #readiness: number;
  readonly #tell: () => void;
  #waiting: Socket | undefined;
  #nextTry: Timer | undefined;
  #isOver = false;

  constructor(calls: Syscalls, of: number, news: "readable" | "urgent", tell: () => void) {
    this.#calls = calls;
    this.#tell = tell;
    this.#readiness = calls.openReadiness(of, news);
    try {
      this.#wait();
    } catch (error) {
      closeSync(this.#readiness);
      throw error;
    }
  }

  #wait(): void {
    const { reader, writer } = this.#calls.openPipe();
    const socket = new Socket({ fd: reader, readable: true, writable: false });
    this.#calls.replaceDescriptor(reader, this.#readiness);
    closeSync(writer);
    this.#waiting = socket;
    // What only watches keeps no process alive.
    socket.unref();
    socket.on("error", () => {
      if (this.#waiting !== socket) return;
      this.#calls.takeReadiness(this.#readiness);
      this.#waitAgain();
      this.#tell();
    });
    socket.resume();
  }

  /** Nobody could handle what is thrown where Node tells of news. */
  #waitAgain(): void {
    try {
      this.#wait();
    } catch {
      this.#waiting = undefined;
      this.#nextTry = systemClock.after(tryAgainMs, () => this.#waitAgain());
    }
  }

  [Symbol.dispose](): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#nextTry?.cancel();
    const socket = this.#waiting;
    this.#waiting = undefined;
    socket?.destroy();
    closeSync(this.#readiness);
  }
}
