import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { BundledProgram } from "./bundled-program.ts";
import type { DriverOrders } from "./dra-driver.ts";

const program = new BundledProgram("dra-driver");

export const buildDriverProgram = (): Promise<AsyncDisposable> => program.build();

/** A DRA driver as a process of its own. */
export class DriverProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  private constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, [program.path, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  /** `rootDir` is the agent's; `buildDriverProgram` must have been called. */
  static async start(rootDir: string, name: string): Promise<DriverProcess> {
    const [registry, own] = [join(rootDir, "plugins_registry"), join(rootDir, "plugins", name)];
    for (const directory of [registry, own]) await mkdir(directory, { recursive: true });
    const driver = new DriverProcess([registry, join(own, "dra.sock"), name]);
    await once(driver.#lines, "line");
    return driver;
  }

  /** Resolves with what it says when it has done so. */
  async order(orders: DriverOrders): Promise<string> {
    const answered = once(this.#lines, "line");
    this.#child.stdin.write(`${JSON.stringify(orders)}\n`);
    return String((await answered)[0]);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}
