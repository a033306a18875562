import { systemClock } from "../../../src/ground/base/index.ts";

const started = systemClock.monotonic();

/** A line for whoever waits: these machines take their time. */
export function progress(text: string): void {
  const seconds = ((systemClock.monotonic() - started) / 1000).toFixed(0).padStart(4);
  process.stderr.write(`vm ${seconds} s  ${text}\n`);
}
