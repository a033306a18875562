import { type Clock, type Logger, messageOf } from "../../../ground/base/index.ts";

export interface LatestPorts {
  readonly clock: Clock;
  readonly log: Logger;
}

const silentMs = 10_000;

/**
 * The last answer of somebody who may take for ever to give one, such as a disk. Not asked again while an answer is due,
 * and what is wrong is said once, not with each look.
 */
export class Latest<Answer> {
  readonly #who: string;
  readonly #ask: () => Promise<Answer>;
  readonly #ports: LatestPorts;
  #last: { readonly askedAt: number; readonly at: number; readonly answer: Answer } | undefined;
  /** Since when an answer is due; undefined: none is. */
  #dueSince: number | undefined;
  #problem: string | undefined;

  constructor(who: string, ask: () => Promise<Answer>, ports: LatestPorts) {
    this.#who = who;
    this.#ask = ask;
    this.#ports = ports;
  }

  /** Undefined: there is none, or none that is any good. */
  answer(oldestMs: number): Answer | undefined {
    return this.dated(oldestMs)?.answer;
  }

  /** With the time at which it was asked for: what happened later it need not know of. */
  dated(oldestMs: number): { readonly askedAt: number; readonly answer: Answer } | undefined {
    const last = this.#last;
    return last === undefined || this.#ports.clock.monotonic() - last.at > oldestMs ? undefined : last;
  }

  /** Asks. Resolves with the answer, or at once if one is due from an earlier time. */
  async refresh(): Promise<void> {
    if (this.#dueSince !== undefined) return;
    const askedAt = this.#ports.clock.monotonic();
    this.#dueSince = askedAt;
    try {
      const answer = await this.#ask();
      this.#last = { askedAt, at: this.#ports.clock.monotonic(), answer };
      if (this.#problem !== undefined)
        this.#ports.log.info("How full the node's disks are is known again", this.#about());
      this.#problem = undefined;
    } catch (error) {
      this.#say(messageOf(error));
    } finally {
      this.#dueSince = undefined;
    }
  }

  /** Nobody waits for it any longer. On a busy machine many an answer takes a second, which is not worth a word. */
  noteLate(): void {
    const { clock } = this.#ports;
    if (this.#dueSince !== undefined && clock.monotonic() - this.#dueSince >= silentMs) this.#say("no answer");
  }

  #say(problem: string): void {
    if (this.#problem === problem) return;
    this.#problem = problem;
    this.#ports.log.warn("Could not read how full the node's disks are", { ...this.#about(), err: problem });
  }

  #about(): { readonly of: string } {
    return { of: this.#who };
  }
}
