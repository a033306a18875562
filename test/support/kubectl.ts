import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { eventually } from "./agent.ts";

/** No command of a test takes as long, on a machine that has hardly time for it too. */
const patienceMs = 150_000;

/** `npm test` brings one along and names it here. */
const program = process.env["NODELET_KUBECTL"] ?? "kubectl";
const isFound = spawnSync(program, ["version", "--client"]).status === 0;

/** Why tests that need kubectl are left out, if they are. Where everything must be tested, they fail instead. */
export const withoutKubectl: string | false =
  isFound || process.env["CI"] === "true" ? false : "kubectl is not on this machine";

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** kubectl as a user runs it, with a kubeconfig and a home of its own. */
export class Kubectl {
  readonly #kubeconfig: string;
  readonly #home: string;

  constructor(kubeconfig: string, home: string) {
    this.#kubeconfig = kubeconfig;
    this.#home = home;
  }

  /** A command under way; its words may come from a shell by `shell`. */
  start(...args: readonly string[]): RunningKubectl {
    return new RunningKubectl(spawn(program, args, { env: this.#environment() }), args);
  }

  /** A line of shell in which `$KUBECTL` is the program, on a terminal of its own. */
  onTerminal(line: string): RunningKubectl {
    const script = ["-qefc", line, "/dev/null"];
    return new RunningKubectl(spawn("script", script, { env: this.#environment(), detached: true }), script);
  }

  async run(...args: readonly string[]): Promise<Ran> {
    const running = this.start(...args);
    running.stdin.end();
    return await running.end();
  }

  /** What it writes to stdout; an error when it fails. */
  async succeed(...args: readonly string[]): Promise<string> {
    const { stdout, stderr, code } = await this.run(...args);
    assert.equal(code, 0, `kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** What it writes, byte for byte, given this to read. */
  async pipe(input: Buffer, ...args: readonly string[]): Promise<Buffer> {
    const child = spawn(program, args, {
      env: this.#environment(),
      stdio: ["pipe", "pipe", "inherit"],
      timeout: patienceMs,
      killSignal: "SIGKILL",
    });
    const output = buffer(child.stdout);
    child.stdin.end(input);
    const [code] = await once(child, "close");
    assert.equal(code, 0, `kubectl ${args.join(" ")}`);
    return await output;
  }

  async apply(...objects: readonly object[]): Promise<string> {
    const file = join(this.#home, "apply.json");
    await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
    return await this.succeed("apply", "-f", file);
  }

  #environment(): Record<string, string> {
    const path = process.env["PATH"] ?? "";
    const editor = join(this.#home, "editor");
    return {
      PATH: path,
      KUBECONFIG: this.#kubeconfig,
      HOME: this.#home,
      EDITOR: editor,
      KUBECTL: program,
      TERM: "dumb",
    };
  }
}

/** A kubectl that goes on until it ends or is no longer needed. */
export class RunningKubectl implements AsyncDisposable {
  readonly stdin: NodeJS.WritableStream;
  readonly ended: Promise<Ran>;
  stdout = "";
  stderr = "";
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #title: string;

  constructor(child: ChildProcessWithoutNullStreams, args: readonly string[]) {
    this.#child = child;
    this.#title = `kubectl ${args.join(" ")}`;
    this.stdin = child.stdin;
    // It may end before it has read all; what it made of that is told by its output.
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.ended = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve({ stdout: this.stdout, stderr: this.stderr, code: code ?? 1 }));
    });
    // Whoever does not wait for the end is not told of it.
    this.ended.catch(() => {});
  }

  /** Waits until the output has something like this. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    let isOver = false;
    void this.ended.finally(() => (isOver = true)).catch(() => {});
    const found = await eventually(
      // Whether it is over is asked first: what it said last is then there to be read.
      async () => (isOver ? { match: pattern.exec(this.stdout) } : this.#said(pattern)),
      `${this.#title} says ${pattern}`,
      patienceMs / 5,
    );
    if (found.match !== null) return found.match;
    throw new Error(`${this.#title} ended without ${pattern}:\n${this.stdout}\n${this.stderr}`);
  }

  #said(pattern: RegExp): { readonly match: RegExpExecArray } | undefined {
    const match = pattern.exec(this.stdout);
    return match === null ? undefined : { match };
  }

  /** Waits until it ends by itself; one that does not is ended, and fails with what it said. */
  async end(): Promise<Ran> {
    const timer = setTimeout(() => {
      this.stderr += `\nnot done within ${patienceMs / 1000} s`;
      this.#child.kill("SIGKILL");
    }, patienceMs);
    return await this.ended.finally(() => clearTimeout(timer));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.ended.catch(() => undefined);
  }
}
