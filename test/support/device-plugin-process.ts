import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { BundledProgram } from "./bundled-program.ts";
import type { PluginOrders } from "./device-plugin.ts";
import { until } from "./until.ts";

const program = new BundledProgram("device-plugin");

export const buildPluginProgram = (): Promise<AsyncDisposable> => program.build();

/** A device plugin as a process of its own. */
export class PluginProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  private constructor(directory: string, resource: string) {
    const args = [program.path, directory, "test.sock", resource];
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  /** Begins when the agent is there, as plugins do; `buildPluginProgram` must have been called. */
  static async start(directory: string, resource: string): Promise<PluginProcess> {
    await until("the agent can be registered with", () => existsSync(join(directory, "kubelet.sock")));
    const plugin = new PluginProcess(directory, resource);
    await once(plugin.#lines, "line");
    return plugin;
  }

  /** Resolves with what it says when it has done so. */
  async order(orders: PluginOrders): Promise<string> {
    const answered = once(this.#lines, "line");
    this.#child.stdin.write(`${JSON.stringify(orders)}\n`);
    return String((await answered)[0]);
  }

  /** Registers, however long the agent takes to be there. */
  async offer(orders: PluginOrders): Promise<void> {
    await until("the plugin is registered", async () => (await this.order({ ...orders, register: true })) === "done");
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}
