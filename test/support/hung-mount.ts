import { execFileSync } from "node:child_process";
import { closeSync, openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { loadSyscalls, unmountFlags } from "../../src/connections/host/index.ts";

/**
 * A file system whose server is there and never answers, as a dead NFS server: every look at it waits until this is
 * disposed of. Who looks by a synchronous call waits for ever: it is our own process that would have to answer.
 */
export class HungMount implements AsyncDisposable {
  readonly path: string;
  readonly #loop: string | undefined;
  #server: number | undefined;

  private constructor(path: string, server: number, loop: string | undefined) {
    this.path = path;
    this.#server = server;
    this.#loop = loop;
  }

  /** Throws without /dev/fuse or root. */
  static async at(path: string): Promise<HungMount> {
    return HungMount.#mount(path, { type: "fuse", source: "hung" });
  }

  /**
   * One that also keeps waiting whoever takes it off: it is on a disk, and the kernel waits for the server's farewell.
   * Throws without loop devices, too.
   */
  static async thatStays(path: string): Promise<HungMount> {
    const image = `${path}.img`;
    writeFileSync(image, Buffer.alloc(1 << 20));
    const loop = execFileSync("losetup", ["-f", "--show", image], { encoding: "utf8" }).trim();
    try {
      return await HungMount.#mount(path, { type: "fuseblk", source: loop });
    } catch (error) {
      execFileSync("losetup", ["-d", loop]);
      throw error;
    }
  }

  static async #mount(path: string, { type, source }: { type: "fuse" | "fuseblk"; source: string }) {
    const server = openSync("/dev/fuse", "r+");
    try {
      const data = `fd=${server},rootmode=40000,user_id=0,group_id=0`;
      (await loadSyscalls()).mount(source, path, type, 0, data);
      if (type === "fuse") return new HungMount(path, server, undefined);
      greet(server);
      return new HungMount(path, server, source);
    } catch (error) {
      closeSync(server);
      throw error;
    }
  }

  /** All that wait are told that the server is gone. */
  letGo(): void {
    if (this.#server !== undefined) closeSync(this.#server);
    this.#server = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.letGo();
    await (await loadSyscalls()).unmount(this.path, unmountFlags.detach).catch(() => {});
    // The kernel detaches it when the last who waits has left.
    if (this.#loop !== undefined) execFileSync("losetup", ["-d", this.#loop]);
  }
}

/** Answers the kernel's first question (FUSE_INIT), which has been asked by mounting: from now on it counts on us. */
function greet(server: number): void {
  const question = Buffer.alloc(1 << 16);
  readSync(server, question);
  const answer = Buffer.alloc(80);
  answer.writeUInt32LE(answer.length, 0);
  question.copy(answer, 8, 8, 16);
  const [major, minor, largestWrite] = [7, 31, 4096];
  answer.writeUInt32LE(major, 16);
  answer.writeUInt32LE(minor, 20);
  answer.writeUInt32LE(largestWrite, 36);
  writeSync(server, answer);
}
