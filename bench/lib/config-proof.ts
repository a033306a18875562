import { once } from "node:events";
import { readdir, stat, truncate } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { RolloutAnswer } from "../../src/beside/cli/config-trial-text.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { freePort } from "../../test/support/free-port.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { statusOf, TestNode } from "../../test/support/test-node.ts";

const never = new AbortController().signal;
/** Half of it is what a turn has to start in, on a busy machine too. */
const trialSeconds = 30;
const longestChangeMs = 300_000;

const characters = [
  "good",
  "good",
  "good at once",
  "invalid",
  "of a wrong type",
  "port in use",
  "no TLS files",
  "no runtime",
] as const;
const faults = ["no fault", "kill -9", "kill -9 and a torn write", "stop", "killed before"] as const;
type Character = (typeof characters)[number];
type Fault = (typeof faults)[number];

/** With what the files say, whatever became of it. */
interface Report extends RolloutAnswer {
  readonly wanted: { readonly version: string };
}

/** The settings by which a configuration is told from the others. */
interface Marks {
  readonly maxPods: number;
  readonly imageGCHighThresholdPercent: number;
}

/**
 * A real agent under a supervisor, with a pod that must not notice. Configurations are written for it and it is killed
 * meanwhile, its last write torn; it must always end on the last one that is good.
 */
export class ConfigProof implements AsyncDisposable {
  readonly #node: TestNode;
  readonly #random: () => number;
  readonly #port: number;
  readonly #taken: Server;
  #good: Marks = { maxPods: 100, imageGCHighThresholdPercent: 100 };
  /** All that ever were. */
  readonly #everGood: Marks[] = [this.#good];
  #witness = "";
  /** What the files said before. */
  #wanted = "";
  /** That were begun with. */
  processes = 1;
  /** To one that was good before the last good one, since that was forgotten with a torn write. */
  wentFurtherBack = 0;

  private constructor(node: TestNode, seed: number, { port, taken }: { port: number; taken: Server }) {
    this.#node = node;
    this.#random = seededRandom(seed);
    this.#port = port;
    this.#taken = taken;
  }

  static async start(seed: number): Promise<ConfigProof> {
    const port = await freePort();
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const node = await TestNode.start({ port, maxPods: 100 }, undefined, ({ rootDir }) => [
      `--dynamic-config-dir=${join(rootDir, "dynamic")}`,
      `--dynamic-config-trial=${trialSeconds}s`,
    ]);
    const proof = new ConfigProof(node, seed, { port, taken });
    await node.agent.apply("witness", { containers: [node.server("main")] });
    await proof.#settle({ character: "good", fault: "no fault" }, "the first configuration");
    proof.#witness = await proof.#seen();
    return proof;
  }

  /** Throws when the agent does not end on the last good configuration, or the pod has noticed. */
  async change(number: number): Promise<{ readonly character: Character; readonly fault: Fault }> {
    const character = this.#pick(characters);
    const fault = this.#pick(faults);
    const { agent } = this.#node;
    if (fault === "killed before") await agent.kill9();
    const marks = this.#marksOf(character, number);
    if (character === "good" || character === "good at once") {
      this.#good = marks;
      this.#everGood.push(marks);
    }
    await agent.configure({ port: this.#port, ...marks, ...this.#harmOf(character, marks) });
    await this.#inflict(fault);
    const what = `change ${number}: ${character}, ${fault}`;
    await this.#settle({ character, fault }, what);
    const seen = await this.#seen();
    if (seen !== this.#witness) throw new Error(`${what}: the pod was ${this.#witness} and is ${seen}`);
    return { character, fault };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#taken.close();
    await this.#node[Symbol.asyncDispose]();
  }

  #marksOf(character: Character, number: number): Marks {
    if (character === "good at once") return { ...this.#good, imageGCHighThresholdPercent: 86 + (number % 14) };
    return { ...this.#good, maxPods: 101 + number };
  }

  #harmOf(character: Character, { maxPods }: Marks): object {
    const address = this.#taken.address();
    switch (character) {
      case "good":
      case "good at once":
        return {};
      case "invalid":
        return { maxPods: -maxPods };
      case "of a wrong type":
        return { evictionHard: "all of it" };
      case "port in use":
        return { port: typeof address === "object" && address !== null ? address.port : 0 };
      case "no TLS files":
        return { tlsCertFile: "/nowhere/a.crt", tlsPrivateKeyFile: "/nowhere/a.key" };
      case "no runtime":
        return { containerRuntimeEndpoint: "unix:///run/nowhere.sock" };
    }
  }

  async #inflict(fault: Fault): Promise<void> {
    const { agent } = this.#node;
    if (fault === "no fault" || fault === "killed before") return;
    // Files are taken over after a second: before, within and after every step of that.
    await systemClock.sleep(this.#random() * 4_000, never);
    if (fault === "stop") return void (await agent.stop());
    await agent.kill9();
    if (fault === "kill -9 and a torn write") await this.#tearLastWrite();
  }

  /** As a loss of power leaves it, on a disk that had not yet written what it was given. */
  async #tearLastWrite(): Promise<void> {
    const store = join(this.#node.agent.rootDir, "dynamic");
    const places = [store, join(store, "versions")];
    let last: { readonly path: string; readonly at: number; readonly bytes: number } | undefined;
    for (const place of places) {
      for (const name of await readdir(place).catch(() => [])) {
        const path = join(place, name);
        const {
          mtimeMs: at,
          size: bytes,
          isFile,
        } = await stat(path).then((found) => ({
          mtimeMs: found.mtimeMs,
          size: found.size,
          isFile: found.isFile(),
        }));
        if (isFile && name.endsWith(".json") && at > (last?.at ?? 0)) last = { path, at, bytes };
      }
    }
    if (last !== undefined) await truncate(last.path, Math.floor(this.#random() * last.bytes));
  }

  /** Supervises the agent until it runs quietly with what it is to run with. */
  async #settle({ character, fault }: { character: Character; fault: Fault }, what: string): Promise<void> {
    const deadline = systemClock.monotonic() + longestChangeMs;
    const isGood = character === "good" || character === "good at once";
    let seen: Report | undefined;
    for (;;) {
      if (this.#node.agent.end !== undefined) {
        await this.#node.agent.begin();
        this.processes++;
      }
      seen = await this.#ask<Report>("GET", "/rollout");
      if (seen !== undefined && seen.wanted.version !== this.#wanted && isOver(seen, isGood)) break;
      // People need not wait for the end of a trial that works.
      const isTried = seen?.trial !== undefined && seen.trial.version === seen.active.version;
      if (isGood && isTried && seen?.missing === undefined) await this.#ask("POST", "/rollout/keep");
      if (systemClock.monotonic() > deadline) throw new Error(`${what}: still ${JSON.stringify(seen)}`);
      await systemClock.sleep(200, never);
    }
    this.#wanted = seen.wanted.version;
    const configz = await this.#ask<{ readonly kubeletconfig: Marks }>("GET", "/configz");
    const { maxPods, imageGCHighThresholdPercent } = configz?.kubeletconfig ?? {};
    const isFound = (marks: Marks): boolean =>
      marks.maxPods === maxPods && marks.imageGCHighThresholdPercent === imageGCHighThresholdPercent;
    if (isFound(this.#good)) return;
    // Whoever has lost the note that the last one is good goes back to one before it.
    const older = fault === "kill -9 and a torn write" && !isGood ? this.#everGood.findLast(isFound) : undefined;
    if (older === undefined) {
      const found = JSON.stringify({ maxPods, imageGCHighThresholdPercent });
      throw new Error(`${what}: the agent runs with ${found}, not with ${JSON.stringify(this.#good)}`);
    }
    this.#good = older;
    this.wentFurtherBack++;
  }

  async #seen(): Promise<string> {
    const isRunning = (pod: Parameters<typeof statusOf>[0]) => statusOf(pod, "main").state?.running !== undefined;
    const pod = await this.#node.agent.until("witness", "running", isRunning);
    const { containerID, restartCount, state } = statusOf(pod, "main");
    return `${containerID} ${restartCount} ${state?.running?.startedAt}`;
  }

  /** Undefined while the agent does not answer, or refuses. */
  async #ask<Answer>(method: "GET" | "POST", path: string): Promise<Answer | undefined> {
    const socketPath = join(this.#node.agent.rootDir, "nodelet.sock");
    try {
      const asked = request({ socketPath, method, path, timeout: 10_000 }).end();
      asked.on("timeout", () => asked.destroy());
      const [response] = (await once(asked, "response")) as [IncomingMessage];
      const answer = await json(response);
      return response.statusCode === 200 ? (answer as Answer) : undefined;
    } catch {
      return undefined;
    }
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }
}

/** What the files say has been taken up, or refused, and nothing is under way any more. */
function isOver({ trial, missing, good, active, wanted, error }: Report, isGood: boolean): boolean {
  if (trial !== undefined || missing !== undefined || good?.version !== active.version) return false;
  return isGood ? active.version === wanted.version : error !== "";
}
