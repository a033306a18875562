import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { agentConfig } from "../../src/beside/cli/agent-process.ts";
import { LocalClient } from "../../src/beside/cli/local-client.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Pod, PodSpec } from "../../src/ground/model/index.ts";
import type { TestContainerd } from "./containerd.ts";
import { freePort } from "./free-port.ts";

/** The built agent as a process of its own, in standalone mode, beside a private containerd. */
export class TestAgent implements AsyncDisposable {
  readonly client: LocalClient;
  readonly manifests: string;
  readonly rootDir: string;
  readonly logFile: string;
  readonly #containerd: TestContainerd;
  readonly #configFile: string;
  readonly #healthzPort: number;
  readonly #flags: readonly string[];
  #program = "bin/nodelet";
  #child: ChildProcess | undefined;
  #isToEnd = false;

  private constructor(containerd: TestContainerd, healthzPort: number, flags: readonly string[]) {
    this.#flags = flags;
    const { stateDir, layout } = containerd;
    this.#containerd = containerd;
    this.#healthzPort = healthzPort;
    this.manifests = join(stateDir, "manifests");
    this.rootDir = layout.agentRoot;
    this.logFile = join(stateDir, "agent-test.log");
    this.#configFile = layout.agentConfig;
    this.client = new LocalClient(join(layout.agentRoot, "nodelet.sock"));
  }

  /** `config` is laid over the KubeletConfiguration that `nodelet up` would write. */
  static async start(
    containerd: TestContainerd,
    config: object = {},
    flags: readonly string[] = [],
  ): Promise<TestAgent> {
    const agent = new TestAgent(containerd, await freePort(), flags);
    await mkdir(agent.manifests, { recursive: true });
    await mkdir(agent.rootDir, { recursive: true });
    await agent.configure(config);
    await agent.launch();
    return agent;
  }

  async configure(config: object): Promise<void> {
    const { layout, endpoint } = this.#containerd;
    const settings = { manifests: this.manifests, runtimeEndpoint: endpoint };
    const base = agentConfig(layout, settings, { host: "127.0.0.1", api: await freePort(), health: this.#healthzPort });
    await writeFile(this.#configFile, JSON.stringify({ ...base, ...config }));
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error("the agent does not run");
    return pid;
  }

  /** The exit code of an agent that ended by itself or was told to; undefined while it runs. */
  get exitCode(): number | undefined {
    return this.#child?.exitCode ?? undefined;
  }

  /** How the agent ended, by itself or by somebody's will; undefined while it runs. */
  get end(): string | undefined {
    const { exitCode, signalCode } = this.#child ?? { exitCode: null, signalCode: null };
    if (signalCode !== null) return `by ${signalCode}`;
    return exitCode === null ? undefined : `with ${exitCode}`;
  }

  /** From the next start on, another build is run: the one whose `bin/nodelet` is below this directory. */
  runFrom(home: string): void {
    this.#program = join(home, "bin", "nodelet");
  }

  /** Starts the process and waits until it answers. */
  async launch(): Promise<void> {
    await this.begin();
    await this.untilHealthy();
  }

  /** Starts the process and waits for nothing. */
  async begin(): Promise<void> {
    const log = createWriteStream(this.logFile, { flags: "a" });
    await once(log, "open");
    const args = [
      `--config=${this.#configFile}`,
      `--root-dir=${this.rootDir}`,
      "-v=2",
      "--hostname-override=test-node",
      ...this.#flags,
    ];
    const child = spawn(this.#program, args, { stdio: ["ignore", log, log] });
    this.#child = child;
    this.#isToEnd = false;
    // Whoever waits for a pod of an agent that is gone would otherwise never know why it does not come.
    child.once("exit", () => {
      if (this.#child !== child || this.#isToEnd) return;
      void this.logTail().then((tail) => process.stderr.write(`the agent ended ${this.end} by itself:\n${tail}\n`));
    });
    log.close();
  }

  async untilHealthy(timeoutMs = 30_000): Promise<void> {
    await eventually(
      async () => {
        if (this.exitCode !== undefined)
          throw new Error(`the agent ended with ${this.exitCode}:\n${await this.logTail()}`);
        return (await this.client.health(AbortSignal.timeout(answerMs))).healthy;
      },
      "the agent answers",
      timeoutMs,
    );
  }

  /** Ends the agent as a crash would. */
  async kill9(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    this.#isToEnd = true;
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  /** Asks the agent to stop; its exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    this.#isToEnd = true;
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    return code;
  }

  /** Puts a manifest into the directory, complete at once as a careful editor would. */
  async apply(name: string, spec: Partial<PodSpec>, metadata: object = {}): Promise<void> {
    const { containers = [], ...rest } = spec;
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...metadata },
      spec: { terminationGracePeriodSeconds: 1, ...rest, containers },
    };
    await this.applyText(name, JSON.stringify(pod));
  }

  async applyText(name: string, text: string): Promise<void> {
    const path = join(this.manifests, `${name}.yaml`);
    await writeFile(join(this.manifests, `.${name}.new`), text);
    await rename(join(this.manifests, `.${name}.new`), path);
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.manifests, `${name}.yaml`), { force: true });
  }

  /** The pod of the manifest of that name, if the agent has it. */
  async pod(name: string): Promise<Pod | undefined> {
    const pods = await this.client.pods(AbortSignal.timeout(answerMs));
    return pods.find(({ metadata }) => metadata?.name === `${name}-test-node`);
  }

  async until(name: string, what: string, condition: (pod: Pod) => boolean, timeoutMs = 60_000): Promise<Pod> {
    return await podUntil(this, () => this.pod(name), condition, `${name}: ${what}`, timeoutMs);
  }

  async untilGone(name: string, timeoutMs = 60_000): Promise<void> {
    await eventually(async () => (await this.pod(name)) === undefined, `${name} is gone`, timeoutMs);
  }

  async log(): Promise<string> {
    return readFile(this.logFile, "utf8").catch(() => "");
  }

  async logTail(): Promise<string> {
    return (await this.log()).split("\n").slice(-40).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

const forever = new AbortController().signal;
const shortestPauseMs = 25;
const longestPauseMs = 100;
/** What a machine takes with all its processors busy all the time, as a multiple of what it takes otherwise. */
const busyFactor = 4;
/** A machine that has hardly time for us answers later than usual. */
export const answerMs = 30_000;

/**
 * Asks again and again until the answer is neither false nor undefined; less often the longer it takes, as every question
 * costs the agent and the API server processor time that whatever is waited for needs. `timeoutMs` is for a machine with
 * time for us: while others keep it busy the wait is longer.
 */
export async function eventually<Result>(
  ask: () => Promise<Result | undefined | false>,
  what: string,
  timeoutMs: number,
): Promise<Result> {
  const beganAt = systemClock.monotonic();
  const busyBefore = busyMs();
  let lastError: unknown;
  for (let waitedMs = 0; waitedMs < patienceMs(timeoutMs, busyMs() - busyBefore); ) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("the agent ended")) throw error;
      lastError = error;
    }
    waitedMs = systemClock.monotonic() - beganAt;
    await systemClock.sleep(Math.min(Math.max(waitedMs / 10, shortestPauseMs), longestPauseMs), forever);
  }
  throw new Error(
    `waited ${timeoutMs / 1000} s in vain for: ${what}${lastError === undefined ? "" : ` (${lastError})`}`,
  );
}

function patienceMs(timeoutMs: number, busy: number): number {
  return timeoutMs + Math.min(busy, timeoutMs * (busyFactor - 1));
}

/** How long somebody has waited for a processor, since the start of the machine. */
function busyMs(): number {
  const path = "/proc/pressure/cpu";
  if (!existsSync(path)) return 0;
  return Number(/^some .* total=(\d+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? 0) / 1000;
}

/** Waits until the pod satisfies the condition; fails with its last status and the end of the agent's log. */
export async function podUntil(
  agent: TestAgent,
  look: () => Promise<Pod | undefined>,
  condition: (pod: Pod) => boolean,
  what: string,
  timeoutMs: number,
): Promise<Pod> {
  let last: Pod | undefined;
  const found = async (): Promise<Pod | undefined> => {
    last = await look();
    return last !== undefined && condition(last) ? last : undefined;
  };
  try {
    return await eventually(found, what, timeoutMs);
  } catch (error) {
    const status = JSON.stringify(last?.status, undefined, 1);
    throw new Error(`${String(error)}\nlast status: ${status}\nagent log:\n${await agent.logTail()}`);
  }
}

export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}
