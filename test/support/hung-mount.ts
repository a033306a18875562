import { closeSync, openSync } from "node:fs";
import { loadSyscalls, unmountFlags } from "../../src/host/index.ts";

/**
 * A file system whose server is there and never answers, as a dead NFS server: every look at it waits until this is
 * disposed of. Who looks by a synchronous call waits for ever: it is our own process that would have to answer.
 */
export class HungMount implements AsyncDisposable {
  readonly path: string;
  #server: number | undefined;

  private constructor(path: string, server: number) {
    this.path = path;
    this.#server = server;
  }

  /** Throws without /dev/fuse or root. */
  static async at(path: string): Promise<HungMount> {
    const server = openSync("/dev/fuse", "r+");
    try {
      const data = `fd=${server},rootmode=40000,user_id=0,group_id=0`;
      (await loadSyscalls()).mount("hung", path, "fuse", 0, data);
    } catch (error) {
      closeSync(server);
      throw error;
    }
    return new HungMount(path, server);
  }

  /** All that wait are told that the server is gone. */
  letGo(): void {
    if (this.#server !== undefined) closeSync(this.#server);
    this.#server = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.letGo();
    await (await loadSyscalls()).unmount(this.path, unmountFlags.detach).catch(() => {});
  }
}
