import { type RunTool, ToolError } from "../../connections/host/index.ts";
import {
  type Clock,
  isAbort,
  type Logger,
  messageOf,
  TaskScope,
  untilAborted,
  withDeadline,
} from "../../ground/base/index.ts";
import { canaries, canaryChain, canaryTables, type Family, type Wish, wishesFor } from "./rules.ts";

export interface UtilChainsPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly run: RunTool;
}

const lookEveryMs = 60_000;
const flushPollMs = 100;
const flushTimeoutMs = 5_000;
/** Others may hold the lock of iptables; it waits for them, but not for ever. */
const waitForLock = ["-w", "5"];
const commandTimeoutMs = 30_000;

/** Makes the chains, and makes them again when somebody has removed them all. Runs programs, and never waits in line. */
export class UtilChains {
  readonly #ports: UtilChainsPorts;

  constructor(ports: UtilChainsPorts) {
    this.#ports = ports;
  }

  async run(signal: AbortSignal): Promise<void> {
    await using scope = new TaskScope(signal);
    const families: Family[] = [];
    for (const family of ["iptables", "ip6tables"] as const) {
      if (await this.#isUsable(family, signal)) families.push(family);
    }
    if (families.length === 0) {
      this.#ports.log.info("No iptables support on this system; not creating the KUBE-IPTABLES-HINT chain");
      return;
    }
    for (const family of families) scope.spawn(family, (each) => this.#keep(family, each));
    await untilAborted(signal);
  }

  async #keep(family: Family, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#ports;
    let lastProblem: string | undefined;
    for (;;) {
      try {
        for (const wish of [...wishesFor(family), ...canaries]) await this.#fulfil(family, wish, signal);
        if (lastProblem !== undefined) log.info("iptables chains are in place after all", { family });
        lastProblem = undefined;
        await this.#untilFlushed(family, signal);
        log.info("The iptables chains have been removed; making them again", { family });
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        const problem = messageOf(error);
        if (problem !== lastProblem) log.warn("Cannot make the iptables chains; trying again", { family, problem });
        lastProblem = problem;
        await clock.sleep(lookEveryMs, signal);
      }
    }
  }

  /** Resolves when the first canary is gone, and the others had the time to go. */
  async #untilFlushed(family: Family, signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const [watched, ...others] = canaryTables;
    do await clock.sleep(lookEveryMs, signal);
    while (await this.#hasCanary(family, watched, signal));
    const deadline = clock.monotonic() + flushTimeoutMs;
    for (const table of others) {
      while (clock.monotonic() < deadline && (await this.#hasCanary(family, table, signal))) {
        await clock.sleep(flushPollMs, signal);
      }
    }
  }

  /** What can't be asked counts as there: only a refusal says that it is gone. */
  async #hasCanary(family: Family, table: string, signal: AbortSignal): Promise<boolean> {
    try {
      return await this.#succeeds(family, ["-t", table, "-S", canaryChain], signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      return true;
    }
  }

  /** One that others keep busy, as while a machine starts, is usable later. */
  async #isUsable(family: Family, signal: AbortSignal): Promise<boolean> {
    try {
      return await this.#succeeds(family, ["-t", "nat", "-S", "POSTROUTING"], signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      return !(error instanceof ToolError) || error.exitCode === busy;
    }
  }

  async #fulfil(family: Family, wish: Wish, signal: AbortSignal): Promise<void> {
    const table = ["-t", wish.table];
    if (wish.type === "chain") {
      // It refuses to make a chain that is there; any other refusal shows when the chain is used.
      await this.#succeeds(family, [...table, "-N", wish.chain], signal);
      return;
    }
    const { chain, rule, position } = wish;
    if (await this.#succeeds(family, [...table, "-C", chain, ...rule], signal)) return;
    await this.#run(family, [...table, position === "first" ? "-I" : "-A", chain, ...rule], signal);
  }

  /** False: it was refused. Whatever else goes wrong rises: a rule that is made on a guess would stand twice. */
  async #succeeds(family: Family, args: readonly string[], signal: AbortSignal): Promise<boolean> {
    try {
      await this.#run(family, args, signal);
      return true;
    } catch (error) {
      if (error instanceof ToolError && error.exitCode === refused) return false;
      throw error;
    }
  }

  #run(family: Family, args: readonly string[], signal: AbortSignal): Promise<string> {
    const { clock, run } = this.#ports;
    const late = (): Error => new Error(`${family} ${args.join(" ")} did not end within ${commandTimeoutMs / 1000} s`);
    return withDeadline(clock, commandTimeoutMs, late, signal, (bounded) =>
      run(family, [...waitForLock, ...args], bounded),
    );
  }
}

/** What is asked for is not there, or there already; others say that the command, the lock or the kernel is at fault. */
const refused = 1;
/** Others hold the lock, or the kernel can't just now. */
const busy = 4;
