import { onAbort } from "../../../src/ground/base/index.ts";
import type { Dice } from "../machine/dice.ts";
import type { LocalCall, Machine } from "../machine/machine.ts";
import type { Life } from "../machine/timeline.ts";
import type { Trace } from "./trace.ts";
import type { Weather } from "./weather.ts";

const slowMs = [200, 8_000] as const;

/** Who answers calls on a unix socket of the machine, and how it fails. */
export interface Callee {
  /** As the trace calls it. */
  readonly name: string;
  readonly machine: Machine;
  readonly trace: Trace;
  readonly dice: Dice;
  readonly weather: (operation: string) => Weather;
  readonly errorOf: (code: "Unavailable" | "Unknown" | "DeadlineExceeded", operation: string, text: string) => Error;
  /** Calls under way, which end with the process that made them. */
  readonly underWay: Map<AbortController, Life | undefined>;
}

export interface Call extends LocalCall {
  readonly operation: string;
  /** How long the work takes on a good day, at least and at most. */
  readonly usualMs: readonly [number, number];
  /** The call arrives, unless it is refused or never answered. */
  readonly perform: (signal: AbortSignal) => Promise<unknown>;
  readonly onHung?: (() => void) | undefined;
  /** When who hangs over it gives up by itself; undefined: never. */
  readonly hungMs?: number | undefined;
}

/** One call on a way on which anything can go wrong. */
export function callThrough(callee: Callee, call: Call): Promise<unknown> {
  const { machine, dice, trace, name, underWay, errorOf } = callee;
  const { operation, signal, allowedMs } = call;
  const { timeline, life } = machine;
  const weather = callee.weather(operation);
  const ending = new AbortController();
  underWay.set(ending, life);
  return new Promise((resolve, reject) => {
    let isSettled = false;
    const settle = (act: () => void): void => {
      if (isSettled) return;
      isSettled = true;
      listening[Symbol.dispose]();
      timer?.cancel();
      underWay.delete(ending);
      act();
    };
    const giveUp = (reason: unknown): void =>
      settle(() => {
        timeline.after(dice.between(0.2, 2), undefined, () => ending.abort(reason));
        reject(reason);
      });
    const listening = onAbort(signal, () => giveUp(signal?.reason));
    const late = (): void => giveUp(errorOf("DeadlineExceeded", operation, "context deadline exceeded"));
    const timer = allowedMs === undefined ? undefined : timeline.after(allowedMs, life, late);
    if (isSettled) return;
    const fate = fateOf(dice, weather);
    const back = (act: () => void): void => void timeline.after(wireMs(dice), life, () => settle(act));
    const fail = (error: unknown): void => back(() => reject(error));
    const workMs = dice.chance(weather.slow) ? dice.between(...slowMs) : dice.between(...call.usualMs);
    timeline.after(wireMs(dice) + workMs, undefined, () => {
      if (fate === "refused") {
        trace.add("fault", `${name} refuses ${operation}`);
        fail(errorOf(dice.pick(["Unavailable", "Unknown"]), operation, "made up"));
        return;
      }
      if (fate === "hung") {
        trace.add("fault", `${name} never answers ${operation}`);
        call.onHung?.();
        if (call.hungMs !== undefined) {
          const givenUp = errorOf("Unknown", operation, "nothing came for too long: context canceled");
          timeline.after(call.hungMs, undefined, () => fail(givenUp));
        }
        return;
      }
      if (ending.signal.aborted) return;
      call.perform(ending.signal).then(
        (answer) => {
          if (fate === "lost") {
            trace.add("fault", `the answer of ${name} to ${operation} is lost`);
            fail(errorOf("Unavailable", operation, "Connection dropped"));
          } else back(() => resolve(answer));
        },
        (error: unknown) => fail(error),
      );
    });
  });
}

/** The process that called is gone: so are its connections. */
export function endCallsOf(life: Life, { underWay, machine, dice }: Callee, reason: () => Error): void {
  for (const [ending, owner] of underWay) {
    if (owner !== life) continue;
    underWay.delete(ending);
    machine.timeline.after(dice.between(0.1, 20), undefined, () => ending.abort(reason()));
  }
}

export function wireMs(dice: Dice): number {
  return dice.between(0.05, 0.4);
}

export function fateOf(dice: Dice, { refused, lost, hung }: Weather): "done" | "refused" | "lost" | "hung" {
  if (refused + lost + hung === 0) return "done";
  const thrown = dice.number();
  if (thrown < refused) return "refused";
  if (thrown < refused + lost) return "lost";
  return thrown < refused + lost + hung ? "hung" : "done";
}
