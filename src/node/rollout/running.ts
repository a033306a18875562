import type { Clock } from "../../ground/base/index.ts";
import type { AgentConfig } from "../../ground/config/index.ts";
import type { Turn } from "./ports.ts";
import type { ConfigVersion, VersionId } from "./version.ts";

export interface LoadedVersion {
  readonly version: ConfigVersion;
  readonly config: AgentConfig;
}

/** Checks that count when a configuration is judged: what a node is for. */
const vitalChecks: readonly string[] = ["runtime", "healthz", "node-api", "api-watch", "lease"];
/** Asked of the first configuration, which nothing can be compared with. */
const leastNeeds: readonly string[] = ["runtime"];

type NodeEvent = Parameters<Turn["recordEvent"]>[0];

/** What the agent runs with at this moment, and how it does. */
export class RunningConfig {
  readonly #clock: Clock;
  readonly #news: NodeEvent[] = [];
  #active: LoadedVersion | undefined;
  #turn: Turn | undefined;
  #begunAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get active(): LoadedVersion | undefined {
    return this.#active;
  }

  get id(): VersionId | undefined {
    return this.#active?.version.id;
  }

  /** Undefined between two turns. */
  get turn(): Turn | undefined {
    return this.#turn;
  }

  /** Since the configuration was taken up, in this process. */
  get elapsedMs(): number {
    return this.#clock.monotonic() - this.#begunAt;
  }

  /** The next turn begins with it, or the one that is under way goes on with it. */
  become(loaded: LoadedVersion): void {
    this.#active = loaded;
    this.#begunAt = this.#clock.monotonic();
  }

  attend(turn: Turn): void {
    this.#turn = turn;
    for (const event of this.#news.splice(0)) turn.recordEvent(event);
  }

  leave(): void {
    this.#turn = undefined;
  }

  /** Said by the turn that comes next, since this one may end before it is heard. */
  tellNext(event: NodeEvent): void {
    this.#news.push(event);
  }

  /** Said by this turn where there is one, after what is yet to be said. */
  tellNow(event: NodeEvent): void {
    this.#news.push(event);
    if (this.#turn === undefined) return;
    for (const each of this.#news.splice(0)) this.#turn.recordEvent(each);
  }

  /** What works now, and must go on to. */
  needs(before: readonly string[] = leastNeeds): readonly string[] {
    const checks = this.#turn?.checks();
    return vitalChecks.filter((name) => before.includes(name) || checks?.get(name) === "ok");
  }

  /** Where the agent is in its start; undefined once it has started. */
  get stage(): string | undefined {
    return this.#turn?.stage();
  }

  /** What is missing of the needs; undefined when nothing is. */
  missing(needs: readonly string[]): string | undefined {
    const turn = this.#turn;
    if (turn === undefined) return "the agent has not started";
    const checks = turn.checks();
    const problems = needs.flatMap((name) => {
      const state = checks.get(name);
      return state === "ok" ? [] : [`${name}: ${state?.reason ?? "nothing was heard of it"}`];
    });
    const stage = turn.stage();
    if (stage !== undefined) problems.push(`the agent has not started, it is at "${stage}"`);
    return problems.length > 0 ? problems.join("; ") : undefined;
  }
}
