import { type LookupAddress, type LookupOptions, lookup } from "node:dns";
import { setMaxListeners } from "node:events";
import type { LookupFunction } from "node:net";
import { type Clock, systemClock } from "./clock.ts";
import { hasCode } from "./errors.ts";
import { Limiter } from "./limiter.ts";
import { never } from "./signals.ts";

export type AskSystem = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface SystemNamesPorts {
  readonly clock: Clock;
  readonly ask?: AskSystem;
}

// Each holds one of the few threads that all work on files needs, for half a minute when no name server answers.
const questionsAtOnce = 2;
// As long as one try of the system's own; then an answer of earlier is better than none.
const patienceMs = 5_000;
// The API server, a manifest's server, the node itself, and what they are redirected to.
const mostRemembered = 64;

/**
 * Addresses of hosts as the machine's own programs find them, with everything that nsswitch.conf names. Such a question
 * can't be given up and may wait for dead name servers, so each name is asked for once at a time, few are asked for at
 * all, and who has waited long enough is given the last answer there was.
 */
export class SystemNames {
  readonly #clock: Clock;
  readonly #ask: AskSystem;
  readonly #threads = new Limiter(questionsAtOnce);
  readonly #underWay = new Map<string, Promise<readonly LookupAddress[]>>();
  readonly #known = new Map<string, readonly LookupAddress[]>();

  constructor({ clock, ask = askSystem }: SystemNamesPorts) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** For sockets. */
  readonly lookup: LookupFunction = (hostname: string, options: LookupOptions, callback) => {
    const family = options.family === 4 || options.family === "IPv4" ? 4 : options.family === 6 ? 6 : 0;
    this.resolve(hostname).then(
      (addresses) => {
        const found = addresses.filter((one) => family === 0 || one.family === family);
        const [first] = found;
        if (first === undefined) callback(nameError("ENOTFOUND", hostname), []);
        else if (options.all) callback(null, found);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };

  /** At least one address, or an error with the code ENOTFOUND or EAI_AGAIN. */
  async resolve(hostname: string): Promise<readonly LookupAddress[]> {
    let outcome: readonly LookupAddress[] | "late" | Error;
    try {
      outcome = await this.#inTime(this.#question(hostname));
    } catch (error) {
      outcome = error instanceof Error ? error : new Error(String(error));
    }
    if (typeof outcome === "object" && !(outcome instanceof Error)) return outcome;
    // A server that says that there is no such name is believed.
    if (hasCode(outcome, "ENOTFOUND")) throw outcome;
    const earlier = this.#known.get(hostname);
    if (earlier !== undefined) return earlier;
    throw outcome === "late" ? nameError("EAI_AGAIN", hostname) : outcome;
  }

  #question(hostname: string): Promise<readonly LookupAddress[]> {
    let question = this.#underWay.get(hostname);
    if (question === undefined) {
      question = this.#threads
        .run(() => this.#ask(hostname), never)
        .then((addresses) => {
          if (addresses.length === 0) throw nameError("ENOTFOUND", hostname);
          this.#remember(hostname, addresses);
          return addresses;
        })
        .finally(() => this.#underWay.delete(hostname));
      this.#underWay.set(hostname, question);
    }
    return question;
  }

  async #inTime(question: Promise<readonly LookupAddress[]>): Promise<readonly LookupAddress[] | "late"> {
    let late: () => void = () => {};
    const timer = this.#clock.after(patienceMs, () => late());
    try {
      return await Promise.race([
        question,
        new Promise<"late">((resolve) => {
          late = () => resolve("late");
        }),
      ]);
    } finally {
      timer.cancel();
    }
  }

  #remember(hostname: string, addresses: readonly LookupAddress[]): void {
    this.#known.delete(hostname);
    this.#known.set(hostname, addresses);
    const [oldest] = this.#known.keys();
    if (this.#known.size > mostRemembered && oldest !== undefined) this.#known.delete(oldest);
  }
}

// Each that waits listens; Node would take more than ten for a leak.
setMaxListeners(0, never);

function nameError(code: "ENOTFOUND" | "EAI_AGAIN", hostname: string): Error {
  const why = code === "ENOTFOUND" ? "there is no such host" : `no name server answered within ${patienceMs / 1_000} s`;
  return Object.assign(new Error(`cannot find an address of ${hostname.slice(0, 253)}: ${why} (${code})`), { code });
}

function askSystem(hostname: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });
}

/** One for the process, as there is one set of threads. */
export const systemNames = new SystemNames({ clock: systemClock });
