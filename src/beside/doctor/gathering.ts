import { setMaxListeners } from "node:events";
import { type Clock, messageOf, unlessAborted, withDeadline } from "../../ground/base/index.ts";
import type { Fact, FactName, Facts, FactValues } from "./facts.ts";
import { secondsText } from "./gather/patience.ts";

/** Gathers one piece; asks for the others that it builds on. */
export type Gatherer<Value> = (need: NeedFact, signal: AbortSignal) => Promise<Value>;
export type Gatherers = { readonly [Name in FactName]: Gatherer<FactValues[Name]> };
export type NeedFact = <Name extends FactName>(name: Name) => Promise<FactValues[Name]>;

/**
 * Gathers the named pieces at the same time, each once. What is not there after `withinMs` is missing: a piece that
 * hangs takes nothing but itself, and what builds on it, with it.
 */
export async function gather(
  gatherers: Gatherers,
  names: Iterable<FactName>,
  { clock, withinMs }: { readonly clock: Clock; readonly withinMs: number },
  signal: AbortSignal,
): Promise<Facts> {
  const late = (): Error => new Error(`no answer within ${secondsText(withinMs)}`);
  return await withDeadline(clock, withinMs, late, signal, async (bounded) => {
    // Every piece, and every question of it, listens to the one signal.
    setMaxListeners(0, bounded);
    const begun = new Map<FactName, Promise<unknown>>();
    const need: NeedFact = async (name) => {
      let piece = begun.get(name);
      if (piece === undefined) {
        piece = unlessAborted(gatherers[name](need, bounded), bounded);
        // Whoever waits for it hears of its failure; it may be that nobody does.
        piece.catch(() => undefined);
        begun.set(name, piece);
      }
      return (await piece) as FactValues[typeof name];
    };
    const facts: Partial<Record<FactName, Fact<unknown>>> = {};
    const wanted = [...names].map(async (name) => {
      facts[name] = await outcome(need(name));
    });
    for (const each of wanted) await each;
    signal.throwIfAborted();
    return complete(gatherers, facts);
  });
}

async function outcome(piece: Promise<unknown>): Promise<Fact<unknown>> {
  try {
    return { value: await piece };
  } catch (error) {
    return { missing: messageOf(error), error };
  }
}

function complete(gatherers: Gatherers, facts: Partial<Record<FactName, Fact<unknown>>>): Facts {
  const names = Object.keys(gatherers) as FactName[];
  const all = names.map((name) => [name, facts[name] ?? { missing: "it was not asked for" }]);
  return Object.fromEntries(all) as Facts;
}
