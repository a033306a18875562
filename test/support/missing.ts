import type { TestContext } from "node:test";

/** Skips a test for want of something this machine may lack; where that is not acceptable, it fails. */
export function goWithout(t: TestContext, reason: string): void {
  if (process.env["CI"] === "true") throw new Error(`${reason}; under CI=true that is a failure`);
  t.skip(reason);
}
