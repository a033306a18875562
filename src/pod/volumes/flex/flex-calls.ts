import {
  type Clock,
  cutText,
  FairLimiter,
  formatDuration,
  messageOf,
  type ProgramResult,
  runForResult,
  withDeadline,
} from "../../../ground/base/index.ts";
import { type DriverAnswer, readAnswer } from "./driver-answer.ts";

export interface FlexCall {
  /** `vendor/driver`. */
  readonly driver: string;
  readonly program: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Texts that nobody may read, also when the driver repeats them. */
  readonly secrets?: readonly string[] | undefined;
  readonly progress?: ((text: string) => void) | undefined;
}

export interface FlexCallPorts {
  readonly clock: Clock;
  /** How long a driver may take; tests are less patient. */
  readonly longestCallMs?: number | undefined;
}

// As long as the kubelet waits for a volume to be attached: a driver may have to make a file system.
const defaultLongestCallMs = 600_000;
const callsAtOnce = 16;
const callsPerDriver = 4;
const patienceMs = 5_000;
const longestAnswer = 256 * 1024;
const longestMessage = 1_024;

/**
 * Runs drivers. One that does not end is given up, and with it what it has started; but it counts until it has really
 * gone, so a driver that hangs for good has a few processes and no more, and the others go on without it.
 */
export class FlexCalls {
  readonly #ports: FlexCallPorts;
  readonly #turns: FairLimiter<string>;
  /** How many calls of a driver have not ended, those given up among them. */
  readonly #running = new Map<string, number>();

  constructor(ports: FlexCallPorts) {
    this.#ports = ports;
    this.#turns = new FairLimiter(ports.clock, { limit: callsAtOnce, share: callsPerDriver, patienceMs });
  }

  /** Throws when there is no answer at all; what the driver refuses is an answer. */
  async call(call: FlexCall, signal: AbortSignal): Promise<DriverAnswer> {
    const { clock, longestCallMs = defaultLongestCallMs } = this.#ports;
    const { driver, command } = call;
    const late = (): Error => {
      const others = this.#othersOf(driver);
      return new Error(`driver ${driver} did not answer ${command} within ${formatDuration(longestCallMs)}${others}`);
    };
    call.progress?.(`driver ${driver}: ${command}${this.#othersOf(driver)}`);
    return await withDeadline(clock, longestCallMs, late, signal, (bounded) => this.#inTurn(call, bounded));
  }

  /** The answer comes when there is one; the turn ends when the process does. */
  async #inTurn(call: FlexCall, signal: AbortSignal): Promise<DriverAnswer> {
    const { driver, command, program, args, secrets = [] } = call;
    const free = await this.#turns.take(driver, signal);
    // From here on the process begins without a break, and its end gives the turn back.
    if (signal.aborted) free();
    signal.throwIfAborted();
    this.#running.set(driver, this.#runningOf(driver) + 1);
    const onGone = (): void => {
      const left = this.#runningOf(driver) - 1;
      if (left === 0) this.#running.delete(driver);
      else this.#running.set(driver, left);
      free();
    };
    const wholeCommand = { program, args: [command, ...args], longestAnswer, withChildren: true, onGone };
    try {
      return answerOf(command, await runForResult(wholeCommand, signal), secrets);
    } catch (error) {
      signal.throwIfAborted();
      // Its arguments hold secrets, and an error of the system may quote them.
      throw new Error(`driver ${driver}: ${command}: ${readable(messageOf(error), secrets)}`);
    }
  }

  #runningOf(driver: string): number {
    return this.#running.get(driver) ?? 0;
  }

  #othersOf(driver: string): string {
    const running = this.#runningOf(driver);
    return running === 0 ? "" : ` (${running} of its calls ${running === 1 ? "has" : "have"} not ended)`;
  }
}

function answerOf(command: string, result: ProgramResult, secrets: readonly string[]): DriverAnswer {
  const { exitCode, killedBy } = result;
  const how = killedBy === undefined ? `exited with ${exitCode}` : `was ended by ${killedBy}`;
  // Drivers in use say what went wrong on either of the two.
  const text = result.stdout.trim() || result.stderr.trim();
  const answer = readAnswer(command, text);
  if (answer.status === "Failure" && !answer.isRefusal) {
    const said = text === "" ? "" : `: ${text}`;
    return { ...answer, message: readable(`${answer.message}; the driver ${how}${said}`, secrets) };
  }
  if (answer.status === "Failure") return { ...answer, message: readable(answer.message, secrets) };
  if (exitCode === 0 || answer.status === "Not supported") return answer;
  const message = `${command} command answered ${answer.status}, but the driver ${how}`;
  return { status: "Failure", isRefusal: false, message };
}

/** Without what must not be read, and not longer than somebody would. */
function readable(text: string, secrets: readonly string[]): string {
  let shown = text;
  const longestFirst = secrets.filter((secret) => secret !== "").sort((a, b) => b.length - a.length);
  for (const secret of longestFirst) shown = shown.replaceAll(secret, "***");
  return cutText(shown, longestMessage);
}
