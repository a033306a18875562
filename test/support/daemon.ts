import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/ground/base/index.ts";
import { type AfterUs, runAfterUs } from "./after-us.ts";
import { freePort } from "./free-port.ts";
import { cgroupOfHome, removeHome } from "./remove-home.ts";

export const nodelet = fileURLToPath(new URL("../../bin/nodelet", import.meta.url));

/**
 * A place for one agent: root directory, configuration, ports. Leaves nothing behind, mounts included, even when the
 * process that made it is killed.
 */
export class DaemonHome implements AsyncDisposable {
  readonly directory: string;
  readonly rootDir: string;
  readonly configFile: string;
  readonly runtimeSocket: string;
  readonly healthzPort: number;
  readonly apiPort: number;
  readonly #daemons: Daemon[] = [];
  readonly #afterUs: AfterUs;

  private constructor(directory: string, healthzPort: number, apiPort: number) {
    this.#afterUs = runAfterUs("./remove-home.ts", directory);
    this.apiPort = apiPort;
    this.directory = directory;
    this.rootDir = join(directory, "root");
    this.configFile = join(directory, "kubelet.json");
    this.runtimeSocket = join(directory, "runtime.sock");
    this.healthzPort = healthzPort;
    mkdirSync(this.rootDir, { mode: 0o750 });
    this.configure({});
  }

  static async create(): Promise<DaemonHome> {
    return new DaemonHome(mkdtempSync(join(tmpdir(), "nodelet-daemon-")), await freePort(), await freePort());
  }

  /** For `cgroupRoot`, to be made by who needs it; it goes with the home. */
  get cgroup(): string {
    return cgroupOfHome(this.directory);
  }

  /** Writes the configuration file: a standalone agent that keeps to its own directory, with the given fields on top. */
  configure(fields: Readonly<Record<string, unknown>>): void {
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      authentication: { webhook: { enabled: false }, anonymous: { enabled: true } },
      authorization: { mode: "AlwaysAllow" },
      podLogsDir: join(this.directory, "logs"),
      // Without cgroups of pods there are none to clean up.
      cgroupsPerQOS: false,
      enforceNodeAllocatable: ["none"],
      healthzPort: this.healthzPort,
      address: "127.0.0.1",
      port: this.apiPort,
      containerRuntimeEndpoint: `unix://${this.runtimeSocket}`,
      ...fields,
    };
    writeFileSync(this.configFile, JSON.stringify(config));
  }

  start({ args = [], env = {}, stderr = "pipe" }: DaemonOptions = {}): Daemon {
    const words = [`--config=${this.configFile}`, `--root-dir=${this.rootDir}`, ...args];
    const daemon = new Daemon(this, words, env, stderr);
    this.#daemons.push(daemon);
    return daemon;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const daemon of this.#daemons) await daemon.kill();
    await removeHome(this.directory);
    await this.#afterUs.dismiss();
  }
}

export interface DaemonOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A descriptor to take the log instead of `Daemon.stderr`. */
  readonly stderr?: number | "pipe";
}

/** bin/nodelet as a process of its own. */
export class Daemon {
  readonly #home: DaemonHome;
  readonly #child: ChildProcess;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  stdout = "";
  stderr = "";

  constructor(
    home: DaemonHome,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    stderr: number | "pipe",
  ) {
    this.#home = home;
    this.#child = spawn(nodelet, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", stderr] });
    this.#child.stdout?.on("data", (chunk) => (this.stdout += String(chunk)));
    this.#child.stderr?.on("data", (chunk) => (this.stderr += String(chunk)));
    this.exited = once(this.#child, "close").then(([code, signal]) => ({ code, signal }));
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${nodelet} could not be started`);
    return this.#child.pid;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill("SIGKILL");
    await this.exited;
  }

  /** GET on the healthz port; undefined while nothing listens there. */
  async healthz(path = "/healthz"): Promise<string | undefined> {
    try {
      return await (await fetch(`http://127.0.0.1:${this.#home.healthzPort}${path}`)).text();
    } catch {
      return undefined;
    }
  }

  /** A request on the local socket. */
  async ask(path: string, method = "GET", body = ""): Promise<{ readonly status: number; readonly text: string }> {
    const socketPath = join(this.#home.rootDir, "nodelet.sock");
    const sent = request({ socketPath, path, method, agent: false });
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of response) text += String(chunk);
    return { status: response.statusCode ?? 0, text };
  }

  /** Waits until the check passes; gives up with the log when the daemon ends before. */
  async until(what: string, check: () => Promise<boolean> | boolean): Promise<void> {
    let ended = false;
    void this.exited.then(() => {
      ended = true;
    });
    while (!(await check())) {
      if (ended) throw new Error(`the agent ended before ${what}:\n${this.stderr}`);
      await systemClock.sleep(20, never);
    }
  }

  async isUp(): Promise<void> {
    await this.until("healthz answered", async () => (await this.healthz()) === "ok");
  }
}

const never = new AbortController().signal;
