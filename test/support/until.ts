import { systemClock } from "../../src/ground/base/index.ts";

/** Whatever is waited for has come by then, on a machine that has hardly time for us too. */
export const patienceMs = 100_000;
const everyMs = 5;
const forever = new AbortController().signal;

/** A bound for a single call, which is answered long before then. */
export const soon = (): AbortSignal => AbortSignal.timeout(patienceMs);

/** Waits until the condition holds; fails with what was waited for. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs;
  while (!(await condition())) {
    if (systemClock.monotonic() > deadline) throw new Error(`waited ${patienceMs / 1000} s in vain until ${what}`);
    await systemClock.sleep(everyMs, forever);
  }
}
